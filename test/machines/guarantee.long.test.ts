import { expect } from "bun:test";
import type { Simulator } from "../../simulator/simulator.ts";
import { simulatorUpstream } from "../support/gateway.ts";
import { sizeOf } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";
import { MachineStack, testWithMachines } from "./machine-stack.ts";

const rounds = sizeOf({ quick: 10, all: 60, measured: 250 });
/** Of 40 places, the pool sells at most 32: 20 and 10 of them here. */
const buyers = [
  { account: "Large", units: 200, atOnce: 18 },
  { account: "Small", units: 100, atOnce: 8 },
] as const;
const floodAtOnce = 60;

const settings = `
plans:
  buyers: { requests_per_minute: 1, tokens_per_minute: 1000, provisioned: true, queue_timeout: 30s }
  guests: { requests_per_minute: 1000000, tokens_per_minute: 1000000000, queue_timeout: 1s }
`;

function models(simulator: Simulator): string {
  return `
pools:
  shared: { tokens_per_minute: 4000000, max_in_flight: 40, unit_tokens_per_minute: 10000 }
upstreams:
  simulator: ${simulatorUpstream(simulator, "openai")}
models:
  chat-model:
    kind: chat
    context_window: 8000
    max_output_tokens: 4000
    targets: [{ upstream: simulator, model: pooled, pool: shared }]
`;
}

async function call(url: string, key: string) {
  const messages = [{ role: "user", content: "echo: hi" }];
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "chat-model", max_tokens: 50, messages }),
  });
  const body = await response.text();
  const servedBy = response.headers.get("x-sluice-served-by");
  return { status: response.status, servedBy, body };
}

testWithMachines(
  "a flood at one of three gateways refuses no call within a guarantee at any of them",
  async () => {
    await using stack = await MachineStack.create({ processes: 1, settings, models });
    const guest = await stack.createKey("Flood", ["--plan", "guests"]);
    const keys: string[] = [];
    for (const { account, units } of buyers) {
      const bought = ["--provisioned-units", String(units), "--provisioned-pool", "shared"];
      keys.push(await stack.createKey(account, ["--plan", "buyers", ...bought]));
    }
    const [first] = stack.machines;
    if (first === undefined) throw new Error("there is no gateway");
    let isOver = false;
    let flooded = 0;
    const flood = Array.from({ length: floodAtOnce }, async () => {
      while (!isOver) if ((await call(first.process.dataUrl, guest)).status === 200) flooded += 1;
    });
    while (flooded === 0) await Bun.sleep(10);
    const own = buyers.flatMap(({ atOnce }, index) =>
      Array.from({ length: atOnce }, async () => {
        const answers = [];
        for (let round = 0; round < rounds; round += 1) {
          answers.push(await call(stack.url, keys[index] ?? ""));
        }
        return answers;
      }),
    );
    const answers = (await Promise.all(own)).flat();
    isOver = true;
    await Promise.all(flood);
    const refused = answers.filter(
      ({ status, servedBy }) => status !== 200 || servedBy !== "provisioned",
    );
    report({
      check: "7 gateways",
      name: `provisioned calls refused beside a flood, three gateways`,
      value: `${refused.length} of ${answers.length}`,
      limit: "0",
      isMet: refused.length === 0,
    });
    expect(refused.slice(0, 3)).toEqual([]);
    // What is not sold was served as well.
    expect(flooded).toBeGreaterThan(0);
  },
);
