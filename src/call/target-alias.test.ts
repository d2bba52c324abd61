import { expect, test } from "bun:test";
import {
  adapterOf,
  callOf,
  modelOf,
  pipelineOf,
  snapshotOf,
  targetOf,
  upstreamOf,
} from "../../test/support/pipeline-fixtures.ts";
import { UpstreamFailure } from "../domain/errors/upstream-failure.ts";
import type { ModelKind } from "../domain/model.ts";
import { readChatRequest } from "../wires/chat/read-request.ts";
import { openChatStream, runChat } from "./chat/chat-call.ts";
import { runEmbeddings } from "./embeddings/embedding-call.ts";

/** The adapter that notes the alias of each request, and refuses it. */
function noting(): { readonly seen: string[]; readonly adapter: ReturnType<typeof adapterOf> } {
  const seen: string[] = [];
  const encode = ({ model }: { readonly model: string }): never => {
    seen.push(model);
    throw new UpstreamFailure({ kind: "unavailable", message: "noted" });
  };
  const chat = { encode, encodeStream: encode };
  const embeddings = { encode, batchLimit: () => 8 };
  return { seen, adapter: adapterOf("http://127.0.0.1:1/v1", { chat, embeddings }) };
}

function callOfKind(kind: ModelKind, adapter: ReturnType<typeof adapterOf>) {
  const own = modelOf({ alias: "own", kind, fallbacks: ["stand-in"], targets: [targetOf("up")] });
  const other = modelOf({ alias: "stand-in", kind, targets: [targetOf("up", { id: "up/n" })] });
  const otherNames = { exact: new Map([["named", "own"]]), prefixes: [] };
  const models = new Map([own, other].map((model) => [model.alias, model]));
  const routing = { ...snapshotOf([]).routing, attempts: 2, firstBackoffMs: 0 };
  const snapshot = { ...snapshotOf([upstreamOf("up", { adapter })]), routing };
  return callOf({ environment: { name: "test", models, otherNames }, snapshot });
}

const messages = [{ role: "user", content: "hi" }];
const chat = { request: readChatRequest({ model: "named", messages }), bodyBytes: 100 };
const embedding = {
  request: {
    model: "named",
    inputs: ["hi"],
    dimensions: undefined,
    user: undefined,
    encodingFormat: undefined,
  },
  bodyBytes: 100,
  decodeTokens: () => Promise.resolve([]),
};

test("adapters get the alias of each target, whose settings they have by it", async () => {
  const { services } = pipelineOf();
  for (const [kind, run] of [
    ["chat", (call) => runChat(call, chat, services)],
    ["chat", (call) => openChatStream(call, chat, services)],
    ["embedding", (call) => runEmbeddings(call, embedding, services)],
  ] as const satisfies readonly [
    ModelKind,
    (call: ReturnType<typeof callOf>) => Promise<unknown>,
  ][]) {
    const { seen, adapter } = noting();
    const failed = run(callOfKind(kind, adapter)).catch((error: unknown) => error);
    expect(await failed).toMatchObject({ code: "model_unavailable" });
    expect(new Set(seen)).toEqual(new Set(["own", "stand-in"]));
  }
});
