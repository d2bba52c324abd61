import { afterAll, beforeAll, expect, test } from "bun:test";
import { chatOf, parseStream } from "../support/bodies.ts";
import type { TestGateway } from "../support/gateway.ts";
import {
  chunk,
  completion,
  gatewayOf,
  startProvider,
  streamed,
  type Provider,
} from "./provider.ts";

/** Servers give calls one number, one id, blank ids or none; callers get each call with its own id. */

interface Call {
  readonly index?: number;
  readonly id?: string | null;
  readonly function: { readonly name?: string; readonly arguments?: string };
}

let provider: Provider;
let gateway: TestGateway;
beforeAll(async () => {
  provider = startProvider();
  gateway = await gatewayOf([provider]);
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

const ask = (stream: boolean): Promise<Response> => {
  const messages = [{ role: "user", content: "Hi" }];
  return gateway.post("/v1/chat/completions", { model: "chat-model", messages, stream });
};

/** Calls as the official clients assemble them, by number; ids and names are joined. */
async function streamedCalls(deltas: readonly (readonly Call[])[]) {
  provider.answers(() =>
    streamed([
      ...deltas.map((calls) => chunk({ tool_calls: calls })),
      chunk({}, { finish_reason: "stop" }),
    ]),
  );
  const { chunks } = parseStream(await (await ask(true)).text());
  const calls: { id: string; name: string; text: string }[] = [];
  for (const part of chunks.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? [])) {
    const call = (calls[part.index] ??= { id: "", name: "", text: "" });
    call.id += part.id ?? "";
    call.name += part.function?.name ?? "";
    call.text += part.function?.arguments ?? "";
  }
  expect(chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? [])).toEqual(["tool_calls"]);
  return calls;
}

async function wholeCalls(calls: readonly Call[]) {
  const message = { role: "assistant", content: null, tool_calls: calls };
  provider.answers(() =>
    Response.json(completion("", { choices: [{ index: 0, message, finish_reason: "stop" }] })),
  );
  const body = await chatOf(await ask(false));
  expect(body.choices[0]?.finish_reason).toBe("tool_calls");
  return (body.choices[0]?.message.tool_calls ?? []).map((call) =>
    call.type === "function"
      ? { id: call.id, name: call.function.name, text: call.function.arguments }
      : { id: call.id, name: "", text: "" },
  );
}

const of = (id: string | null | undefined, name: string, text: string, index?: number): Call => ({
  ...(index !== undefined && { index }),
  ...(id !== undefined && { id }),
  function: { name, arguments: text },
});

const cases: readonly (readonly [string, readonly Call[]])[] = [
  ["no id and one number", [of(undefined, "f", '{"a":1}', 0), of(undefined, "f", '{"a":2}', 0)]],
  ["no id and no number", [of(undefined, "f", '{"a":1}'), of(undefined, "f", '{"a":2}')]],
  ["ids of null", [of(null, "f", '{"a":1}', 0), of(null, "f", '{"a":2}', 1)]],
  ["blank ids", [of(" ", "f", '{"a":1}', 0), of("", "f", '{"a":2}', 0)]],
  ["one id", [of("call_0", "f", '{"a":1}', 0), of("call_0", "f", '{"a":2}', 0)]],
  ["one id and two numbers", [of("call_0", "f", '{"a":1}', 0), of("call_0", "f", '{"a":2}', 1)]],
];

test.each(cases)("two calls of one name with %s are two, each with its id", async (_, calls) => {
  const forms = [
    await streamedCalls(calls.map((call) => [call])),
    await streamedCalls([calls]),
    await wholeCalls(calls),
  ];
  for (const got of forms) {
    expect(got.map(({ name, text }) => [name, text])).toEqual([
      ["f", '{"a":1}'],
      ["f", '{"a":2}'],
    ]);
    const ids = got.map(({ id }) => id);
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) expect(id).toMatch(/^call_\w+$/);
  }
});

test("one id with two names is two calls", async () => {
  const calls = [of("call_0", "f", "{}", 0), of("call_0", "g", "{}", 0)];
  for (const got of [await streamedCalls(calls.map((call) => [call])), await wholeCalls(calls)]) {
    expect(got.map(({ name, text }) => [name, text])).toEqual([
      ["f", "{}"],
      ["g", "{}"],
    ]);
    expect(new Set(got.map(({ id }) => id)).size).toBe(2);
  }
});

test("a call in pieces that each repeat its id and name is one", async () => {
  for (const id of ["call_0", undefined]) {
    const got = await streamedCalls([
      [of(id, "f", "", 0)],
      [of(id, "f", '{"a":', 0)],
      [of(id, "f", "1}", 0)],
      [of(id, "f", "", 0)],
    ]);
    expect(got).toMatchObject([{ name: "f", text: '{"a":1}' }]);
  }
});

test("a call in pieces that is repeated as a whole at its end is one", async () => {
  const got = await streamedCalls([
    [of("call_0", "f", "", 0)],
    [of(undefined, "", '{"a":', 0)],
    [of(undefined, "", "1}", 0)],
    [of("call_0", "f", '{"a":1}', 0)],
  ]);
  expect(got).toMatchObject([{ name: "f", text: '{"a":1}' }]);
});

test("ids are unique over the choices of an answer", async () => {
  const choice = (index: number) => ({
    index,
    message: { role: "assistant", content: null, tool_calls: [of("call_0", "f", "{}")] },
    finish_reason: "tool_calls",
  });
  provider.answers(() => Response.json(completion("", { choices: [choice(0), choice(1)] })));
  const body = await chatOf(await ask(false));
  const ids = body.choices.flatMap(({ message }) => message.tool_calls?.map(({ id }) => id) ?? []);
  expect([ids.length, new Set(ids).size]).toEqual([2, 2]);
});
