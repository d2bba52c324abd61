import { expect, test } from "bun:test";
import { startSimulator } from "../../simulator/simulator.ts";
import { startFaultProcess, type FaultProcess } from "../support/fault-process.ts";
import { until } from "../support/until.ts";
import { startWebhookReceiver, webhookSecret } from "../support/webhook-receiver.ts";

const hello = { model: "chat-model", messages: [{ role: "user", content: "Hello" }] };

/** Makes calls until as many were answered; while there is no process, none is. */
async function call(gateway: FaultProcess, times: number): Promise<void> {
  for (let answered = 0; answered < times;) {
    const isAnswered = await gateway
      .post(hello)
      .then((answer) => answer.text())
      .then(
        () => true,
        () => false,
      );
    if (isAnswered) answered += 1;
    else await Bun.sleep(10);
  }
}

async function untilServing({ serving }: FaultProcess): Promise<void> {
  for (;;) {
    const answer = await fetch(`${serving.dataUrl}/readyz`).catch(() => undefined);
    if (answer?.status === 200) return;
    await Bun.sleep(10);
  }
}

test("no event is lost when the process is killed, with a receiver that is there or away", async () => {
  await using simulator = startSimulator();
  await using receiver = startWebhookReceiver();
  await using gateway = await startFaultProcess({
    ledger: `{ flush_interval: 10ms, events: { webhook: { url: "${receiver.url}", secret: ${webhookSecret}, longest_pause: 1s, batch: 7 } } }`,
    upstreams: `{ simulator: { kind: openai, base_url: "${simulator.url}" } }`,
    models: `{ chat-model: { kind: chat, context_window: 200000, max_output_tokens: 64000, targets: [{ model: simulated-chat, upstream: simulator }] } }`,
  });
  for (const status of [200, 503, 200, 503]) {
    receiver.status = status;
    const calls = call(gateway, 60);
    const { processPid } = gateway.serving;
    const known = receiver.messages.length;
    await until(() => receiver.messages.length > known);
    process.kill(processPid, "SIGKILL");
    await calls;
    await untilServing(gateway);
  }
  receiver.status = 200;
  await call(gateway, 20);
  const delivered = () => new Set(receiver.rows.map(({ id }) => id));
  await until(() => delivered().size > 100);
  const rows = await gateway.stopAndReadRows();
  const stored = new Set(rows.map(({ id }) => id));
  expect(stored.size).toBeGreaterThan(100);
  // The next one stores and delivers what had no time for that while the gateway ended.
  await using again = await gateway.restart();
  await until(() => stored.isSubsetOf(delivered()));
  again.signal("SIGTERM");
  await again.exited;
  const all = new Set((await gateway.stopAndReadRows()).map(({ id }) => id));
  expect([...delivered().difference(all)]).toEqual([]);
}, 180_000);
