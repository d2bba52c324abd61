import { z } from "zod";
import type { ChatChoice, ChatEvent } from "../../src/domain/chat/answer.ts";
import type { Conversation } from "../../src/domain/chat/conversation.ts";
import { UpstreamFailure } from "../../src/domain/errors/upstream-failure.ts";
import { httpUrl, text } from "../../src/settings/values.ts";
import type { ChatCodec, StreamDecoder, UpstreamRequest } from "../../src/upstreams/adapter.ts";
import type { UpstreamKind } from "../../src/upstreams/kind.ts";

/** A provider that echoes the words of a request, one on each line, and then a line with a dot. */
export interface EchoServer extends AsyncDisposable {
  readonly url: string;
}

export function startEchoServer(): EchoServer {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => new Response(`${(await request.text()).replaceAll(" ", "\n")}\n.\n`),
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

const fields = { url: httpUrl("Address."), voice: text("Said first.").optional() };
const section = z.strictObject({ greeting: text("Said before the echo.") }).optional();
const targetSections = { chat: section, embedding: section };

interface EchoSettings {
  readonly url: string;
  /** By the model's identifier. */
  readonly greetings: ReadonlyMap<string, string>;
}

/** The smallest kind that uses every setting of a kind. */
export const echoKind: UpstreamKind<typeof fields, typeof targetSections, EchoSettings> = {
  name: "echo",
  about: "a server that says what it hears",
  fields,
  answerTimes: { firstByte: "5s", idle: "5s" },
  idleConnections: "1s",
  contradictions: ({ voice }) =>
    voice === "none" ? [{ path: ["voice"], message: "must be a voice" }] : [],
  targetSections,
  targetProblems: ({ model }, { path }) =>
    model === "mute" ? [{ path: [...path, "model"], message: "says nothing" }] : [],
  sites: ({ model, upstream: { name } }) =>
    ["near", "far"].map((side, turn) => ({
      upstream: `${name}@${side}`,
      model,
      turn,
      modelFor: {},
    })),
  build: ({ name, fields: { url, voice = "" }, targets }) =>
    ["near", "far"].map((side) => {
      const greetings = targets.map(
        (target) => [target.model, `${voice}${target.section?.greeting ?? ""}`] as const,
      );
      return { name: `${name}@${side}`, settings: { url, greetings: new Map(greetings) } };
    }),
  createAdapter: (settings) => ({
    chat: echoCodec(settings),
    requestIdHeader: "x-echo-id",
    authorize: (request) => Promise.resolve(request),
    readFailure: ({ status }) => ({ kind: "unavailable", message: "no echo", status }),
  }),
  endingModels: ({ greetings }, served) =>
    greetings.has("old") ? [`${[...served.keys()].join()} fades`] : [],
};

function echoCodec({ url, greetings }: EchoSettings): ChatCodec {
  const requestOf = (request: Conversation, model: string): UpstreamRequest => ({
    url,
    method: "POST",
    headers: { "content-type": "text/plain" },
    body: `${greetings.get(model) ?? ""}${textOf(request)}`,
  });
  return {
    takesChoiceCount: false,
    takesImageUrls: false,
    encode: (request, model) => ({
      request: requestOf(request, model),
      decode: ({ body }) => {
        const decoder = new EchoDecoder();
        const events = [...decoder.push(body), ...decoder.end()];
        if (decoder.failure !== undefined) throw decoder.failure;
        const words = events.map((event) => (event.type === "text-delta" ? event.text : ""));
        return {
          choices: [choiceOf(words.join(""))],
          usage: undefined,
          systemFingerprint: undefined,
          serviceTier: undefined,
        };
      },
    }),
    encodeStream: (request, model) => ({
      request: requestOf(request, model),
      newDecoder: () => new EchoDecoder(),
    }),
  };
}

function textOf({ turns }: Conversation): string {
  const block = turns.at(-1)?.blocks[0];
  return block?.type === "text" ? block.text : "";
}

function choiceOf(text: string): ChatChoice {
  const blocks = [{ type: "text", text }] as const;
  return { index: 0, blocks, finishReason: "stop", logprobs: undefined };
}

class EchoDecoder implements StreamDecoder<ChatEvent> {
  failure: UpstreamFailure | undefined;
  isDone = false;
  readonly malformedEvents = 0;
  readonly #text = new TextDecoder();
  #rest = "";

  push(bytes: Uint8Array): readonly ChatEvent[] {
    const lines = (this.#rest + this.#text.decode(bytes, { stream: true })).split("\n");
    this.#rest = lines.pop() ?? "";
    this.isDone ||= lines.includes(".");
    return lines.map((line) =>
      line === "."
        ? { type: "choice-finish", choice: 0, finishReason: "stop" }
        : { type: "text-delta", choice: 0, text: `${line} ` },
    );
  }

  end(): readonly ChatEvent[] {
    if (this.isDone) return [];
    this.failure = new UpstreamFailure({ kind: "broken-answer", message: "the echo was cut" });
    return [];
  }
}
