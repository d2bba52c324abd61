import { expect, test } from "bun:test";
import { z } from "zod";
import { makeProcessFolder } from "../failures/outage-process.ts";
import { createKeyOf } from "../support/process-key.ts";
import { runSluice, type ServingProcess, startServing } from "../support/sluice-process.ts";
import { startValkey, valkeyProgram } from "../support/valkey-server.ts";

/** Real processes at a steady rate, replaced in the middle while calls go on. */

const steps = 100;
const stepMs = 100;
const tokens = 12_000;
const requests = 6;
const weights = { cached: 0.1, output: 5 };
const tokenWeights = `token_weights: { cached_input: ${weights.cached}, output: ${weights.output} }`;
const settings = `
shutdown: { pre_stop: 0s }
plans:
  agent: { requests_per_minute: 100000, tokens_per_minute: ${tokens}, ${tokenWeights} }
  shared:
    requests_per_minute: 100000
    tokens_per_minute: 100000000
    each_end_user: { requests_per_minute: ${requests}, tokens_per_minute: 100000000 }`;

/** Who calls, every how many steps, and at least how many are answered. */
const callers = [
  // A reservation is 1,900 tokens, and the first call counts 1,200, each later one 300.
  { plan: "agent", user: undefined, every: 1, least: 28 },
  { plan: "shared", user: "heavy", every: 1, least: requests },
  { plan: "shared", user: "light", every: 20, least: 5 },
  { plan: "shared", user: undefined, every: 10, least: 10 },
] as const;

const answerSchema = z.object({
  usage: z.object({
    prompt_tokens: z.number(),
    completion_tokens: z.number(),
    prompt_tokens_details: z.object({ cached_tokens: z.number() }),
  }),
});

interface Answered {
  readonly caller: (typeof callers)[number];
  readonly status: number;
  /** What it counts under its plan. */
  readonly weighted: number;
  readonly sentAt: number;
  readonly endedAt: number;
}

test.each([
  ["memory", 1],
  ["Valkey", 2],
] as const)(
  "limits in %s hold at a steady rate while all processes (%d) are replaced",
  async (store, processes) => {
    if (store === "Valkey" && valkeyProgram === null) return;
    await using valkey = store === "Valkey" ? await startValkey() : undefined;
    const shared = valkey === undefined ? "" : `\nlimits: { store: "${valkey.url}", timeout: 5s }`;
    await using folder = makeProcessFolder({ processes, settings: settings + shared });
    const { configPath } = folder;
    const keys = {
      agent: await createKeyOf(configPath, { plan: "agent" }),
      shared: await createKeyOf(configPath, { plan: "shared" }),
    };
    await using gateway = await startServing(["--config", configPath]);
    const answered: Promise<Answered>[] = [];
    let replaced: ReturnType<typeof runSluice> | undefined;
    for (let step = 0; step < steps; step += 1) {
      if (step === steps / 2) replaced = runSluice(["restart", "--config", configPath]);
      for (const caller of callers) {
        if (step % caller.every !== 0) continue;
        answered.push(ask(gateway, { caller, key: keys[caller.plan], step }));
      }
      await Bun.sleep(stepMs);
    }
    const all = await Promise.all(answered);
    expect((await replaced)?.exitCode).toBe(0);
    for (const caller of callers) {
      const own = all.filter((each) => each.caller === caller);
      const served = own.filter(({ status }) => status === 200);
      expect(served.length).toBeGreaterThanOrEqual(caller.least);
      for (const { sentAt } of served) {
        // Those that surely began and ended within one minute.
        const within = served.filter((each) => {
          return each.sentAt >= sentAt && each.endedAt <= sentAt + 60_000;
        });
        const sum = within.reduce((total, { weighted }) => total + weighted, 0);
        if (caller.plan === "agent") expect(sum).toBeLessThanOrEqual(tokens);
        if (caller.user !== undefined) expect(within.length).toBeLessThanOrEqual(requests);
      }
    }
  },
  120_000,
);

interface Asked extends Pick<Answered, "caller"> {
  readonly key: string;
  readonly step: number;
}

/** On a connection of its own, which comes to any of the processes. */
async function ask({ dataUrl }: ServingProcess, { caller, key, step }: Asked): Promise<Answered> {
  const sentAt = performance.now();
  const response = await fetch(`${dataUrl}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      connection: "close",
    },
    body: JSON.stringify({
      model: "chat-model",
      max_tokens: 20,
      user: caller.user,
      messages: [
        { role: "system", content: `Rules of ${caller.plan}. ${"word ".repeat(1_100)}` },
        { role: "user", content: "count: 100" },
        ...(step % 3 === 0 ? [{ role: "user", content: `Question ${step}` }] : []),
      ],
    }),
  });
  const { status } = response;
  const answer: unknown = await response.json();
  const weighted = status === 200 ? weightOf(answerSchema.parse(answer)) : 0;
  return { caller, status, weighted, sentAt, endedAt: performance.now() };
}

function weightOf({ usage }: z.infer<typeof answerSchema>): number {
  const cached = usage.prompt_tokens_details.cached_tokens;
  const input = usage.prompt_tokens - cached + cached * weights.cached;
  return input + usage.completion_tokens * weights.output;
}
