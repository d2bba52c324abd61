import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { makeProcessFolder } from "../failures/outage-process.ts";
import { until } from "../support/ledger-truth-process.ts";
import { createKeyOf } from "../support/process-key.ts";
import { type ServingProcess, startServing } from "../support/sluice-process.ts";
import { startValkey, valkeyProgram } from "../support/valkey-server.ts";

const upstreams = ["one", "two", "three"];
const calls = 90;
/** So few at once are no load, which would move sessions. */
const atOnce = 3;

const body = JSON.stringify({
  model: "chat-model",
  messages: [{ role: "user", content: "echo: hi" }],
  max_tokens: 8,
});

/** Each call is on a connection of its own, so that each process gets some. */
async function callOf(session: string, key: string, { dataUrl }: ServingProcess): Promise<string> {
  const response = await fetch(`${dataUrl}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      connection: "close",
      "x-sluice-session": session,
    },
    body,
  });
  const answer = await response.text();
  return response.headers.get("x-sluice-target") ?? answer;
}

/** What has served ten sessions: `session 1: one; model=chat-model`. */
async function targetsOfSessions(key: string, gateway: ServingProcess): Promise<readonly string[]> {
  const served = new Set<string>();
  for (let count = 0; count < calls; count += atOnce) {
    await Promise.all(
      Array.from({ length: atOnce }, async (_, index) => {
        const session = `session ${(count + index) % 10}`;
        served.add(`${session}: ${await callOf(session, key, gateway)}`);
      }),
    );
  }
  return [...served].toSorted();
}

test.skipIf(valkeyProgram === null)(
  "three processes agree on the targets of sessions, and so do those after a restart",
  async () => {
    await using limits = await startValkey();
    const settings = `limits: { store: "${limits.url}" }`;
    await using folder = makeProcessFolder({ processes: 3, settings });
    const { configPath } = folder;
    const file = readFileSync(configPath, "utf8");
    const [line = "", address = ""] = /^ {2}simulator: (.*)$/m.exec(file) ?? [];
    const targets = upstreams.map((name) => `{ upstream: ${name}, model: simulated-chat }`);
    const withThree = file
      .replace(line, [line, ...upstreams.map((name) => `  ${name}: ${address}`)].join("\n"))
      .replace("[{ upstream: simulator, model: simulated-chat }]", `[${targets.join(", ")}]`);
    writeFileSync(configPath, withThree);
    const key = await createKeyOf(configPath);
    const run = async (): Promise<readonly string[]> => {
      await using gateway = await startServing(["--config", configPath]);
      const metrics = async (): Promise<string> =>
        (await fetch(`${gateway.adminUrl}/metrics`)).text();
      const processesIn = async (metric: string): Promise<number> => {
        const found = (await metrics()).matchAll(new RegExp(`^${metric}{process="(\\d+)"`, "gm"));
        return new Set([...found].map(([, process]) => process)).size;
      };
      await until("all serve", async () => (await processesIn("sluice_open_requests")) === 3);
      const found = await targetsOfSessions(key, gateway);
      expect(await processesIn("sluice_affinity_calls_total")).toBe(3);
      gateway.signal("SIGTERM");
      await gateway.exited;
      return found;
    };
    const before = await run();
    expect(before).toHaveLength(10);
    const isTarget = /^session \d: (one|two|three); model=chat-model$/;
    for (const each of before) expect(each).toMatch(isTarget);
    expect(await run()).toEqual(before);
  },
  120_000,
);
