import { expect, test } from "bun:test";
import {
  gatewayOf,
  inputsOf,
  startProvider,
  vectorsAnswer,
  type ProviderAnswer,
  type ProviderRequest,
} from "./provider.ts";

const texts = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `text ${index}`);

/** The vector of `text 7` is `[7]`. */
function answer(request: ProviderRequest): Response {
  return vectorsAnswer(inputsOf(request).map((input) => [Number(String(input).slice(5))]));
}

/** Counts the requests under way. */
class Crowd {
  readonly #waiting: (() => void)[] = [];
  open = 0;
  most = 0;

  async handle(answers: () => ProviderAnswer): Promise<Response> {
    this.open += 1;
    this.most = Math.max(this.most, this.open);
    try {
      return await answers();
    } finally {
      this.open -= 1;
    }
  }

  /** Resolves once so many are under way, for all that wait. */
  async gather(count: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    if (this.open >= count) for (const go of this.#waiting.splice(0)) go();
    await promise;
  }

  release(): void {
    for (const go of this.#waiting.splice(0)) go();
  }
}

interface Answer {
  readonly data: readonly { readonly index: number; readonly embedding: readonly number[] }[];
  readonly usage: { readonly prompt_tokens: number };
}

async function expectInOrder(response: Response, count: number): Promise<void> {
  expect(response.status).toBe(200);
  const { data, usage } = (await response.json()) as Answer;
  expect(data.map(({ index }) => index)).toEqual(Array.from({ length: count }, (_, at) => at));
  expect(data.map(({ embedding }) => embedding)).toEqual(data.map((_, at) => [at]));
  expect(usage.prompt_tokens).toBe(count);
}

const call = { model: "embedding-model" };

test("a call of many inputs takes half of the places of its upstream, and no more", async () => {
  const crowd = new Crowd();
  await using provider = startProvider((request) =>
    crowd.handle(async () => {
      // The first ones are answered at once; then all that may run at once are awaited.
      if (provider.requests.length > 20 && provider.requests.length <= 90) await crowd.gather(10);
      else crowd.release();
      return answer(request);
    }),
  );
  const upstream = "embedding_batch_limit: 1, max_in_flight: 20";
  await using gateway = await gatewayOf([provider], { upstream });
  const response = await gateway.post("/v1/embeddings", { ...call, input: texts(100) });
  await expectInOrder(response, 100);
  expect([crowd.most, provider.requests.length]).toEqual([10, 100]);
});

test("while the inputs of one key are under way, another key is served", async () => {
  const crowd = new Crowd();
  await using provider = startProvider((request) =>
    crowd.handle(async () => {
      if (!inputsOf(request).includes("text 99")) {
        if (provider.requests.length > 4) await crowd.gather(Infinity);
      }
      return answer(request);
    }),
  );
  const upstream = "embedding_batch_limit: 1, max_in_flight: 8";
  await using gateway = await gatewayOf([provider], { upstream });
  const { text: other } = await gateway.createKey();
  const large = gateway.post("/v1/embeddings", { ...call, input: texts(40) });
  while (crowd.open < 4 || provider.requests.length < 8) await Bun.sleep(1);
  for (let calls = 0; calls < 3; calls += 1) {
    const headers = { authorization: `Bearer ${other}` };
    const input = "text 99";
    const response = await gateway.post("/v1/embeddings", { ...call, input }, { headers });
    expect(response.status).toBe(200);
  }
  provider.answers((request) => crowd.handle(() => answer(request)));
  crowd.release();
  await expectInOrder(await large, 40);
});

test("a target that throttles gets fewer at once, and no finished input again", async () => {
  const crowd = new Crowd();
  const answered: string[] = [];
  let refused = 0;
  await using provider = startProvider((request) =>
    crowd.handle(async () => {
      if (crowd.open > 12) {
        refused += 1;
        return Response.json({ error: { message: "slow down" } }, { status: 429 });
      }
      await Bun.sleep(5);
      answered.push(...inputsOf(request).map(String));
      return answer(request);
    }),
  );
  // The budget of retries would not suffice.
  const sections = { routing: "{ retry_floor: 0, retry_budget: 0 }" };
  const upstream = "embedding_batch_limit: 1";
  await using gateway = await gatewayOf([provider], { upstream, sections });
  const count = 400;
  const response = await gateway.post("/v1/embeddings", { ...call, input: texts(count) });
  await expectInOrder(response, count);
  expect(new Set(answered)).toEqual(new Set(texts(count)));
  expect(answered).toHaveLength(count);
  expect(refused).toBeGreaterThan(0);
  expect(refused).toBeLessThan(count / 4);
  const [row] = await gateway.usage();
  expect(row).toMatchObject({ inputTokens: count, attempts: 1, outcome: "completed" });
});

test("a target that throttles from the start is left for another one", async () => {
  await using first = startProvider(() =>
    Response.json({ error: { message: "slow down" } }, { status: 429 }),
  );
  await using second = startProvider(answer);
  const upstream = "embedding_batch_limit: 1";
  await using gateway = await gatewayOf([first, second], { upstream });
  const response = await gateway.post("/v1/embeddings", { ...call, input: texts(30) });
  await expectInOrder(response, 30);
  expect(first.requests.length).toBeLessThanOrEqual(4);
});
