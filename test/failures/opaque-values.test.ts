import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { openChatStream, runChat } from "../../src/call/chat/chat-call.ts";
import type { CallServices } from "../../src/call/services.ts";
import type { AnswerBlock, ChatEvent, ChatResult } from "../../src/domain/chat/answer.ts";
import type { Block, Conversation, Turn } from "../../src/domain/chat/conversation.ts";
import { UpstreamFailure } from "../../src/domain/errors/upstream-failure.ts";
import { nextOf } from "../../src/domain/waiting/flow.ts";
import type { Upstream } from "../../src/snapshot/snapshot.ts";
import {
  adapterOf,
  callerOf,
  callOf,
  modelOf,
  pipelineOf,
  snapshotOf,
  targetOf,
  upstreamOf,
} from "../support/pipeline-fixtures.ts";

const request = { url: "http://127.0.0.1:1/", method: "POST", headers: {}, body: "" } as const;

const transport: CallServices["transport"] = () =>
  Promise.resolve({
    status: 200,
    headers: new Headers(),
    arrived: () => new Uint8Array(),
    take: () => undefined,
    isOver: true,
    whenReady: () => undefined,
  });

/**
 * A provider that signs each thought with all that came before it, and refuses a conversation with
 * a thought that it did not write just there.
 */
class Signer {
  readonly name: string;
  /** The turns of each request, as the upstream got them. */
  readonly seen: (readonly Turn[])[] = [];
  isDown = false;

  constructor(name: string) {
    this.name = name;
  }

  get upstream(): Upstream {
    const { chat, ...adapter } = adapterOf("http://127.0.0.1:1/v1");
    if (chat === undefined) throw new Error("the adapter serves chat models");
    return upstreamOf(this.name, {
      adapter: {
        ...adapter,
        chat: {
          ...chat,
          origin: ({ model, upstream: account }) => {
            return { wire: "messages", model, account, provesText: true };
          },
          encode: ({ turns }, model) => {
            const answer = this.#answer(turns, model);
            return { request, decode: () => answer };
          },
          encodeStream: ({ turns }, model) => {
            const events = [...eventsOf(this.#answer(turns, model))];
            return {
              request,
              newDecoder: () => ({
                failure: undefined,
                isDone: true,
                malformedEvents: 0,
                push: () => [],
                end: () => events.splice(0),
              }),
            };
          },
        },
      },
    });
  }

  #answer(turns: readonly Turn[], model: string): ChatResult {
    if (this.isDown) throw new UpstreamFailure({ kind: "unavailable", message: "down" });
    this.seen.push([...turns]);
    const before: unknown[] = [];
    for (const { role, blocks } of turns) {
      for (const { at: _, ...block } of blocks) {
        if (block.type === "reasoning" && block.opaque !== this.#sign(model, before, block.text)) {
          const message = "the thought is bound to a different conversation";
          throw new UpstreamFailure({ kind: "invalid-request", message });
        }
        before.push([role, block]);
      }
    }
    const text = `thought ${before.length}`;
    const opaque = this.#sign(model, before, text);
    const blocks: readonly AnswerBlock[] = [
      { type: "reasoning", text, opaque },
      { type: "text", text: `answer ${before.length}` },
    ];
    return {
      choices: [{ index: 0, blocks, finishReason: "stop", logprobs: undefined }],
      usage: undefined,
      systemFingerprint: undefined,
      serviceTier: undefined,
    };
  }

  #sign(model: string, before: readonly unknown[], text: string): string {
    const hash = createHash("sha256").update(JSON.stringify([this.name, model, before, text]));
    return `signature.${hash.digest("base64")}`;
  }
}

function* eventsOf({ choices }: ChatResult): Iterable<ChatEvent> {
  for (const block of choices[0]?.blocks ?? []) {
    if (block.type === "reasoning") {
      yield { type: "reasoning-delta", choice: 0, text: block.text };
      yield { type: "reasoning-block", choice: 0, content: block };
    } else if (block.type === "text") yield { type: "text-delta", choice: 0, text: block.text };
  }
  yield { type: "choice-finish", choice: 0, finishReason: "stop" };
}

interface Asking {
  readonly account?: string;
  readonly isStreamed?: boolean;
  /** The identifier of the model at the first upstream. */
  readonly model?: string;
}

interface Asked {
  readonly blocks: readonly Block[];
  readonly servedBy: string;
  readonly adjusted: readonly (readonly [string, string | number])[];
}

async function ask(
  turns: readonly Turn[],
  signers: readonly Signer[],
  { account = "acct_a", isStreamed = false, model: identifier = "m" }: Asking = {},
): Promise<Asked> {
  const upstreams = signers.map(({ upstream }) => upstream);
  const targets = upstreams.map(({ name }, index) =>
    targetOf(name, { priority: index + 1, ...(index === 0 && { model: identifier }) }),
  );
  const model = modelOf({ targets, contextWindow: 1e9 });
  const caller = callerOf({ requestsPerMinute: 1_000, tokensPerMinute: 1e15 });
  const call = callOf({
    id: `req_${crypto.randomUUID()}`,
    caller: { ...caller, key: { ...caller.key, accountId: account } },
    environment: { name: "test", models: new Map([[model.alias, model]]) },
    snapshot: snapshotOf(upstreams),
  });
  const conversation: Conversation = {
    wire: "messages",
    model: model.alias,
    isStreamed,
    turns,
    tools: [],
    caps: [],
    options: {},
    extra: {},
  };
  const chat = { request: conversation, bodyBytes: 100 };
  const { services } = pipelineOf({ transport });
  const started = isStreamed
    ? await openChatStream(call, chat, services)
    : await runChat(call, chat, services);
  const { attempt, answer } = started;
  return {
    servedBy: attempt.candidate.upstream.name,
    adjusted: [...attempt.adjusted],
    blocks: "choices" in answer ? blocksOf(answer) : await streamedBlocks(answer),
  };
}

function blocksOf({ choices }: ChatResult): readonly Block[] {
  return (choices[0]?.blocks ?? []).map((block): Block => {
    if (block.type === "tool-call") throw new Error("no tools were offered");
    return { ...block, at: "" };
  });
}

async function streamedBlocks(
  answer: Awaited<ReturnType<typeof openChatStream>>["answer"],
): Promise<readonly Block[]> {
  const blocks: Block[] = [];
  for (let events = await nextOf(answer); events !== undefined; events = await nextOf(answer)) {
    for (const event of events) {
      if (event.type === "reasoning-block") blocks.push({ ...event.content, at: "" });
      if (event.type === "text-delta") blocks.push({ type: "text", text: event.text, at: "" });
    }
  }
  return blocks;
}

function said(text: string): Turn {
  return { role: "user", blocks: [{ type: "text", text, at: "" }], at: "" };
}

function answered(blocks: readonly Block[]): Turn {
  return { role: "assistant", blocks, at: "" };
}

function thoughtsIn(turns: readonly Turn[] | undefined): readonly (string | undefined)[] {
  const blocks = turns?.flatMap((turn) => turn.blocks) ?? [];
  return blocks.flatMap((block) => (block.type === "reasoning" ? [block.opaque] : []));
}

const dropped: Asked["adjusted"] = [["messages", "thoughts-dropped"]];

test.each([false, true])(
  "50 turns return to their signer byte for byte, each request the last one and more; streamed: %p",
  async (isStreamed) => {
    const signer = new Signer("one");
    const turns: Turn[] = [];
    for (let turn = 0; turn < 50; turn += 1) {
      turns.push(said(`question ${turn}`));
      const { blocks, adjusted } = await ask(turns, [signer], { isStreamed });
      expect(adjusted).toEqual([]);
      turns.push(answered(blocks));
    }
    const bytes = signer.seen.map((seen) => JSON.stringify(seen).slice(0, -1));
    for (const [index, sent] of bytes.entries()) {
      expect(thoughtsIn(signer.seen[index])).toHaveLength(index);
      expect(sent.startsWith(bytes[index - 1] ?? "")).toBe(true);
      expect(sent).not.toContain("s1.");
    }
  },
);

test("thoughts of one account are dropped at the key of another, and the caller is told", async () => {
  const signer = new Signer("one");
  const first = await ask([said("a secret")], [signer]);
  const turns = [said("a secret"), answered(first.blocks), said("and?")];
  const other = await ask(turns, [signer], { account: "acct_b" });
  expect(thoughtsIn(signer.seen.at(-1))).toEqual([]);
  expect(other.adjusted).toEqual(dropped);
  const own = await ask(turns, [signer]);
  expect(thoughtsIn(signer.seen.at(-1))).toHaveLength(1);
  expect(own.adjusted).toEqual([]);
});

test("thoughts of another model or upstream are dropped, all of the conversation", async () => {
  const [one, two] = [new Signer("one"), new Signer("two")];
  const first = await ask([said("a")], [one]);
  const turns = [said("a"), answered(first.blocks), said("b")];
  expect((await ask(turns, [one], { model: "other" })).adjusted).toEqual(dropped);
  const second = await ask(turns, [two]);
  expect(second.adjusted).toEqual(dropped);
  const mixed = [...turns, answered(second.blocks), said("c")];
  for (const signers of [[one], [two]]) {
    expect((await ask(mixed, signers)).adjusted).toEqual(dropped);
    expect(thoughtsIn(signers[0]?.seen.at(-1))).toEqual([]);
  }
});

type Change = (tagged: string) => string;
const changes: readonly (readonly [string, Change])[] = [
  ["untagged", (tagged) => tagged.split(".").slice(2).join(".")],
  ["truncated", (tagged) => tagged.slice(0, -1)],
  ["cut in the tag", (tagged) => tagged.slice(0, 12)],
  [
    "flipped in the value",
    (tagged) => `${tagged.slice(0, -2)}${tagged.endsWith("A=") ? "B" : "A"}=`,
  ],
  [
    "flipped in the tag",
    (tagged) => tagged.replace(/^s1\.(.)/, (_, first) => (first === "A" ? "s1.B" : "s1.A")),
  ],
  ["tagged twice", (tagged) => `${tagged.slice(0, 26)}${tagged}`],
  ["of another version", (tagged) => tagged.replace("s1.", "s2.")],
  ["a million dots", () => `s1.${".".repeat(1_000_000)}`],
  ["huge", (tagged) => tagged + "A".repeat(10_000_000)],
  ["empty", () => ""],
];

test.each(changes)(
  "a thought that is %s takes all others with it, and fails nothing",
  async (_, change) => {
    const signer = new Signer("one");
    const turns: Turn[] = [];
    for (const question of ["a", "b", "c"]) {
      turns.push(said(question));
      turns.push(answered((await ask(turns, [signer])).blocks));
    }
    const spoiled = turns.map((turn, index): Turn => {
      if (index !== 3) return turn;
      const blocks = turn.blocks.map((block) =>
        block.type === "reasoning" ? { ...block, opaque: change(block.opaque ?? "") } : block,
      );
      return { ...turn, blocks };
    });
    const { adjusted } = await ask([...spoiled, said("d")], [signer]);
    expect(adjusted).toEqual(dropped);
    expect(thoughtsIn(signer.seen.at(-1))).toEqual([]);
    // Without it, the rest is as it was.
    expect(
      signer.seen
        .at(-1)
        ?.map(({ role }) => role)
        .join(),
    ).toBe(spoiled.map(({ role }) => role).join() + ",user");
  },
);

test("a thought whose text was changed is dropped before its signer sees it", async () => {
  const signer = new Signer("one");
  const { blocks } = await ask([said("a")], [signer]);
  const other = blocks.map((block) =>
    block.type === "reasoning" ? { ...block, text: "I know better." } : block,
  );
  expect((await ask([said("a"), answered(other), said("b")], [signer])).adjusted).toEqual(dropped);
});

test("a turn of thoughts alone goes with them", async () => {
  const signer = new Signer("one");
  const { blocks } = await ask([said("a")], [signer]);
  const turns = [said("a"), answered(blocks.slice(0, 1)), said("b")];
  await ask(turns, [signer], { account: "acct_b" });
  expect(signer.seen.at(-1)).toEqual([said("a"), said("b")]);
});

test("the origin of the newest thought comes first, whatever its priority", async () => {
  const [one, two] = [new Signer("one"), new Signer("two")];
  const both = [one, two];
  one.isDown = true;
  const turns: Turn[] = [said("a")];
  const first = await ask(turns, both);
  expect(first.servedBy).toBe("two");
  one.isDown = false;
  turns.push(answered(first.blocks), said("b"));
  const second = await ask(turns, both);
  expect([second.servedBy, second.adjusted]).toEqual(["two", []]);
  // Another conversation begins at the first one, and so does one of another account.
  expect((await ask([said("a")], both)).servedBy).toBe("one");
  expect((await ask(turns, both, { account: "acct_b" })).servedBy).toBe("one");
});

test("a conversation goes to another origin and back without a refusal", async () => {
  const [one, two] = [new Signer("one"), new Signer("two")];
  const turns: Turn[] = [];
  const served: string[] = [];
  for (let turn = 0; turn < 12; turn += 1) {
    one.isDown = turn >= 4 && turn < 6;
    two.isDown = turn >= 8 && turn < 10;
    turns.push(said(`question ${turn}`));
    const { blocks, servedBy, adjusted } = await ask(turns, [one, two], {
      isStreamed: turn % 2 === 1,
    });
    // From the first thoughts of another origin on, the conversation has none.
    expect(adjusted).toEqual(turn < 4 ? [] : dropped);
    served.push(servedBy);
    turns.push(answered(blocks));
  }
  const stays = (name: string, times: number): string[] => Array<string>(times).fill(name);
  expect(served).toEqual([...stays("one", 4), ...stays("two", 4), ...stays("one", 4)]);
});
