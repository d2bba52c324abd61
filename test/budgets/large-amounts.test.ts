/** Sums of money near the safe integers: 9,007,199.254740991 USD in nano-USD. */
import { expect, test } from "bun:test";
import { BudgetGateway, nano, nanoOf } from "../support/budget-gateway.ts";
import { ScriptedUpstream } from "../support/scripted-upstream.ts";
import { startValkey, valkeyProgram } from "../support/valkey-server.ts";

const tokens = 90_000_000;
/** Not a round one: every digit counts. */
const usdPerMillion = "9999.999777";
const costNano = 899_999_979_930_001;
const most = 9_000_000;

function sections(upstream: ScriptedUpstream) {
  const price = `price: { input: 0.001, cache_read: 0, output: "${usdPerMillion}" }`;
  return {
    upstreams: `{ scripted: { kind: openai, base_url: "${upstream.url}" } }`,
    models: `
  chat-model:
    kind: chat
    context_window: 100000000
    max_output_tokens: 100000000
    targets: [{ model: m, upstream: scripted, ${price} }]`,
  };
}

const answer = (stream: ScriptedUpstream["last"]): void => {
  stream.text("Hello");
  stream.finish();
  stream.usage(1, tokens);
  stream.end();
};

const large = {
  model: "chat-model",
  stream: true,
  max_tokens: tokens,
  messages: [{ role: "user", content: "Hello" }],
};

test("what is spent beyond the largest limit is told, and stops nothing", async () => {
  const upstream = new ScriptedUpstream(answer);
  await using gateway = await BudgetGateway.start({ sections: sections(upstream) });
  const { account_id } = await gateway.key();
  const body = { account_id, limit_usd: String(most), period: "month", mode: "warn" };
  const first = await gateway.create(body);
  const calls = 21;
  for (let call = 0; call < calls; call += 1) {
    // No key may use so many tokens in a minute.
    const { text } = await gateway.gateway.createKey();
    const headers = { authorization: `Bearer ${text}` };
    expect((await gateway.call(large, undefined, { headers })).status).toBe(200);
  }
  const rows = await gateway.rows();
  expect(rows.map((row) => row.costNano)).toEqual(rows.map(() => costNano));
  const second = await gateway.create(body);
  for (const { id } of [first, second]) {
    const { state } = await gateway.budget(id);
    expect(state).toMatchObject({ left_usd: "0.000000000", percent: 209 });
    // Numbers of the runtime are exact up to 9,007,199 USD.
    expect(Number(state.spent_usd)).toBeCloseTo((costNano * calls) / nano, 6);
  }
  expect(await gateway.json("GET", "/usage/totals?since=1h")).toMatchObject({
    data: [{ cost_usd: expect.stringMatching(/^18899999\.57853/) }],
  });
  await upstream.stop();
});

test.each([
  ["memory", 1],
  ["Valkey", 3],
] as const)(
  "the largest budget in %s admits what fits, to the last call, and no more",
  async (store, processes) => {
    if (store === "Valkey" && valkeyProgram === null) return;
    const upstream = new ScriptedUpstream(answer);
    await using valkey = store === "Valkey" ? await startValkey() : undefined;
    await using gateway = await BudgetGateway.start({
      ...(processes > 1 && { processes }),
      sections: {
        ...sections(upstream),
        ...(valkey && { limits: `{ store: "${valkey.url}", timeout: 5s }` }),
      },
    });
    const { account_id } = await gateway.key();
    const limit_usd = String(most);
    const budget = await gateway.create({ account_id, limit_usd, period: "total" });
    const all = async (count: number): Promise<number> => {
      const { text } = await gateway.gateway.createKey();
      const headers = { authorization: `Bearer ${text}` };
      const calls = Array.from({ length: count }, () =>
        gateway.call(large, undefined, { headers }),
      );
      const statuses = (await Promise.all(calls)).map(({ status }) => status);
      expect(statuses.filter((status) => ![200, 429, 503].includes(status))).toEqual([]);
      return statuses.filter((status) => status === 200).length;
    };
    let served = 0;
    for (let tries = 0; tries < 100 && served < 10; tries += 1) served += await all(10);
    expect(served).toBe(10);
    expect(await all(9)).toBe(0);
    const cost = await gateway.costOfRows();
    expect(cost).toBe(10 * costNano);
    expect(await gateway.spent(budget.id)).toBe(cost);
    const left = nanoOf(budget.limit_usd) - cost;
    expect(left).toBe(200_699_990);
    await upstream.stop();
  },
  30_000,
);
