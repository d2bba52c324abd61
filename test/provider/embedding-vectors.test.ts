import { afterAll, beforeAll, expect, test } from "bun:test";
import type { TestGateway } from "../support/gateway.ts";
import {
  floatsInBase64,
  gatewayOf,
  inputsOf,
  startProvider,
  vectorsAnswer,
  type Provider,
  type ProviderRequest,
} from "./provider.ts";

const good = [0.5, 1];
const call = { model: "embedding-model", input: ["a", "b"] };

interface Answer {
  readonly data: readonly { readonly embedding: readonly number[] }[];
  readonly usage: { readonly prompt_tokens: number };
}

async function embeddingsOf(response: Response): Promise<readonly (readonly number[])[]> {
  expect(response.status).toBe(200);
  const { data } = (await response.json()) as Answer;
  return data.map(({ embedding }) => embedding);
}

function plainJson(text: string): Response {
  return new Response(text, { headers: { "content-type": "application/json" } });
}

const indexed = (indexes: readonly unknown[]): Response =>
  Response.json({ data: indexes.map((index) => ({ index, embedding: good })) });

const broken: readonly (readonly [string, () => Response, object?])[] = [
  ["another length than was asked", () => vectorsAnswer([good, good]), { dimensions: 3 }],
  ["two lengths", () => vectorsAnswer([good, [1]])],
  ["two lengths in base64", () => vectorsAnswer([good, [1]].map(floatsInBase64))],
  ["a cut base64", () => vectorsAnswer([floatsInBase64(good), "AACAPwA="])],
  ["a base64 that is a number short", () => vectorsAnswer([floatsInBase64(good), "AACAPw=="])],
  ["no numbers", () => vectorsAnswer([[], []])],
  ["no text", () => vectorsAnswer(["", ""])],
  ["NaN in base64", () => vectorsAnswer([good, [1, Number.NaN]].map(floatsInBase64))],
  ["infinite numbers", () => vectorsAnswer([good, [1, -Infinity]].map(floatsInBase64))],
  ["null among its numbers", () => vectorsAnswer([good, [1, null]])],
  ["NaN", () => plainJson('{"data":[{"embedding":[1,NaN]},{"embedding":[1,2]}]}')],
  ["a vector too few", () => vectorsAnswer([good])],
  ["a vector too many", () => vectorsAnswer([good, good, good])],
  ["one index twice", () => indexed([1, 1])],
  ["an index too far", () => indexed([0, 2])],
  ["indexes that are texts", () => indexed(["0", "x"])],
];

let first: Provider;
let second: Provider;
let gateway: TestGateway;
beforeAll(async () => {
  first = startProvider();
  second = startProvider();
  // No target goes out.
  const out = "out: { failures: 1000, error_percent: 100 }";
  const sections = { routing: `{ ${out}, retry_floor: 1000 }` };
  gateway = await gatewayOf([first, second], { sections });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await first[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
});

test.each(broken)("an answer with %s goes to no caller: the next target serves", async (...row) => {
  const [, answer, fields = {}] = row;
  const dimensions = "dimensions" in fields ? 3 : 2;
  const served = Array.from({ length: dimensions }, (_, index) => index + 0.5);
  first.answers(answer);
  second.answers(() => vectorsAnswer([served, served]));
  const response = await gateway.post("/v1/embeddings", { ...call, ...fields });
  expect(await embeddingsOf(response)).toEqual([served, served]);
  expect([first.requests.length, second.requests.length]).toEqual([1, 1]);
});

test("a server that ignores dimensions is told to the operator, and not to the caller", async () => {
  await using provider = startProvider(() => vectorsAnswer([good, good]));
  await using gateway = await gatewayOf([provider]);
  const response = await gateway.post("/v1/embeddings", { ...call, dimensions: 256 });
  expect(response.status).toBe(503);
  expect(await response.text()).not.toContain("256");
  expect(gateway.log.join("\n")).toContain("asked for `dimensions`");
});

test("indexes may be missing, or in another order", async () => {
  const later = { index: 1, embedding: [2] };
  const sooner = { index: 0, embedding: [1] };
  for (const data of [
    [later, sooner],
    [{ embedding: [1] }, later],
    [{ embedding: [1] }, { embedding: [2] }],
  ]) {
    first.answers(() => Response.json({ data }));
    expect(await embeddingsOf(await gateway.post("/v1/embeddings", call))).toEqual([[1], [2]]);
  }
});

test("the batches of one call have one length, whatever a server does in between", async () => {
  const lengthOf = ([input]: readonly unknown[]): number => (input === "c" ? 3 : 2);
  const answer = (request: ProviderRequest): Response => {
    const inputs = inputsOf(request);
    return vectorsAnswer(inputs.map(() => Array.from({ length: lengthOf(inputs) }, () => 1)));
  };
  await using provider = startProvider(answer);
  await using gateway = await gatewayOf([provider], { upstream: "embedding_batch_limit: 1" });
  const input = ["a", "b", "c", "d"];
  const response = await gateway.post("/v1/embeddings", { ...call, input });
  expect(response.status).toBe(503);
  expect(gateway.log.join("\n")).toContain("all targets of a model must be the same model");
});

test("after a failover the rest has the length of what was finished", async () => {
  await using first = startProvider(async (request) => {
    if (!inputsOf(request).includes("b")) return vectorsAnswer([good]);
    // Ends the attempt once the other inputs are finished.
    while (first.requests.length < 4) await Bun.sleep(1);
    await Bun.sleep(20);
    return Response.json({ error: { message: "no" } }, { status: 500 });
  });
  let lengths: readonly number[] = good;
  await using second = startProvider((request) =>
    vectorsAnswer(inputsOf(request).map(() => lengths)),
  );
  await using gateway = await gatewayOf([first, second], { upstream: "embedding_batch_limit: 1" });
  const input = ["a", "b", "c", "d"];
  expect(await embeddingsOf(await gateway.post("/v1/embeddings", { ...call, input }))).toEqual(
    input.map(() => good),
  );
  expect(second.requests.map(inputsOf)).toEqual([["b"]]);
  lengths = [1, 2, 3];
  const mixed = await gateway.post("/v1/embeddings", { ...call, input });
  expect(mixed.status).toBe(503);
});
