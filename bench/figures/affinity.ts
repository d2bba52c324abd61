import { sessionOf } from "../../src/call/chat/session.ts";
import { Peppers } from "../../src/domain/keys/peppers.ts";
import { Secret } from "../../src/domain/keys/secret.ts";
import { listCandidates } from "../../src/routing/candidates.ts";
import { Sessions } from "../../src/routing/affinity.ts";
import { unknownTarget } from "../../src/routing/target-view.ts";
import { readChatRequest } from "../../src/wires/chat/read-request.ts";
import { callOf, modelOf, targetOf, upstreamOf } from "../../test/support/pipeline-fixtures.ts";
import type { Figure } from "../figure.ts";
import { summarize } from "../statistics.ts";
import { targets } from "../targets.ts";
import type { OwnContext } from "./context.ts";

const rounds = 9;
const promptCache = { filled: "by_provider", keepsAnHour: false } as const;
const names = ["one", "two", "three"];
const model = modelOf({ targets: names.map((name) => targetOf(name, { promptCache })) });
const group = {
  isFallback: false,
  targets: model.targets.map((target) => {
    return { model, target, upstream: upstreamOf(target.upstream), view: unknownTarget };
  }),
};
const order = { random: Math.random, health: { inFlightOf: () => 1 } };
const pepper = new Secret("a pepper of the bench".padEnd(40, "."));
const sessions = new Sessions(new Peppers(pepper));
// As a parser makes it: whole, not joined when it is first read.
const text = Buffer.from("word ".repeat(3_000)).toString();
const bytes = text.length;
const isMarked = (): boolean => false;
const request = readChatRequest({
  model: model.alias,
  messages: [
    { role: "system", content: text },
    { role: "user", content: "Go on" },
  ],
});

/** What a session adds to the order of three targets: named in a header, or by its prompt. */
export async function measureAffinity({ plan, progress }: OwnContext): Promise<readonly Figure[]> {
  progress("affinity: calls with and without a session");
  const figures: Figure[] = [];
  for (const [name, title, headers] of [
    ["named", "A session in a header", { "x-sluice-session": crypto.randomUUID() }],
    ["prefix", "A session by a prompt of 15 kB", {}],
  ] as const) {
    const added: number[] = [];
    let without = 0;
    // The first ones compile the code.
    for (let round = -2; round < rounds; round += 1) {
      const plain = microsecondsOf(plan.warmUpCalls, undefined);
      const difference = microsecondsOf(plan.warmUpCalls, new Headers(headers)) - plain;
      if (round < 0) continue;
      added.push(difference);
      without = plain;
      await Bun.sleep(0);
    }
    const value = summarize(added);
    figures.push({
      name: `affinity.${name}`,
      title: `${title}, added to a call with three targets`,
      unit: "us",
      direct: without,
      sluice: without + value.median,
      comparison: { kind: "added", value },
      target: targets.affinityUs,
    });
  }
  return figures;
}

function microsecondsOf(calls: number, headers: Headers | undefined): number {
  const call = callOf({ headers: headers ?? new Headers() });
  const prompt = { request, bytes, isMarked };
  const before = process.cpuUsage();
  for (let index = 0; index < calls; index += 1) {
    const session = headers && sessionOf(prompt, model, { call, sessions });
    listCandidates([group], order, session);
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / calls;
}
