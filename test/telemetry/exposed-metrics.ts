import { startGateway, type TestGateway } from "../support/gateway.ts";
import { readMetrics, type PageMetric } from "./metrics-page.ts";

const models = `
  sound: { kind: chat, context_window: 200000, targets: [
    { model: sound, upstream: simulator, price: { input: 1, cache_read: 0, output: 2 } }] }
  failing: { kind: chat, context_window: 200000, targets: [
    { model: fault-error-500, upstream: simulator, priority: 1 },
    { model: spare, upstream: simulator, priority: 2 } ] }
  paired: { kind: chat, context_window: 200000, targets: [
    { model: one, upstream: simulator }, { model: other, upstream: simulator } ] }
  pooled: { kind: chat, context_window: 200000, targets: [
    { model: pooled, upstream: simulator, pool: shared } ] }`;
const pools = `
  shared: { tokens_per_minute: 100000, unit_tokens_per_minute: 1000, max_in_flight: 1 }`;

const plans = `
  patient: { requests_per_minute: 1000, tokens_per_minute: 1000000, queue_timeout: 60s }
  tried: { requests_per_minute: 1, tokens_per_minute: 1, mode: audit }`;

/** A gateway of one process. */
export function startMeasured(): Promise<TestGateway> {
  return startGateway({
    sections: { models, pools, plans },
    key: { plan: "patient" },
  });
}

/** Makes calls for all kinds of series, and returns the page of metrics after them. */
export async function pageAfterCalls(gateway: TestGateway): Promise<string> {
  const tried = await gateway.createKey({ plan: "tried" });
  const call = async (model: string, key = gateway.key): Promise<number> => {
    const body = { model, messages: [{ role: "user", content: "Hello" }] };
    const headers = { authorization: `Bearer ${key}` };
    const answer = await gateway.post("/v1/chat/completions", body, { headers });
    await answer.arrayBuffer();
    return answer.status;
  };
  const statuses = [await call("sound"), await call("failing"), await call("paired")];
  statuses.push(await call("sound", tried.text));
  // All but one of them wait for their turn.
  statuses.push(...(await Promise.all(Array.from({ length: 8 }, () => call("pooled")))));
  if (statuses.some((status) => status !== 200)) {
    throw new Error(`calls ended with ${statuses.join(", ")}`);
  }
  await gateway.usage();
  return (await fetch(`${gateway.adminUrl}/metrics`)).text();
}

export async function exposedPage(): Promise<string> {
  await using gateway = await startMeasured();
  return await pageAfterCalls(gateway);
}

/** The metrics of that page by name. */
export async function exposedMetrics(): Promise<ReadonlyMap<string, PageMetric>> {
  return readMetrics(await exposedPage());
}
