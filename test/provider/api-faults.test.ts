import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Simulator } from "../../simulator/simulator.ts";
import { apiNames, type EveryTarget, profileNames, startEveryTarget } from "./every-target.ts";

/** The faults of servers, for each API that a target may choose and each profile. */
let every: EveryTarget;
beforeAll(async () => {
  every = await startEveryTarget();
});
afterAll(() => every[Symbol.asyncDispose]());

type Mode = Parameters<Simulator["setFaultPlan"]>[0][number]["mode"];

async function ask(model: string, mode: Mode, stream = false): Promise<Response> {
  every.simulator.setFaultPlan([{ mode, times: Number.POSITIVE_INFINITY }]);
  const messages = [{ role: "user", content: "count: 40" }];
  const response = await every.gateway.post("/v1/chat/completions", { model, messages, stream });
  every.simulator.setFaultPlan([]);
  return response;
}

describe.each([...apiNames, ...profileNames])("%s", (model) => {
  test.each([
    ["throttle-429-bare", 503, "the provider is limiting requests"],
    ["overloaded-503", 503, "the provider is overloaded"],
    ["bad-credential", 503, "refused the gateway's credential"],
    ["model-not-found-404", 503, "does not know the model"],
    ["context-overflow", 400, "context_length_exceeded"],
    ["bad-request-400", 400, "temperature"],
    ["error-200", 503, "the provider answered with an error"],
    ["non-sse-200", 503, "answer was incomplete or invalid"],
    ["html-502", 503, "the provider answered with an error"],
  ] as const)("%s is %d for a caller, whole and streamed", async (mode, status, words) => {
    for (const stream of [false, true]) {
      const response = await ask(model, mode, stream);
      expect(await response.text()).toContain(words);
      expect(response.status).toBe(status);
    }
  });
});

/** Converse has frames of its own, whose faults `test/failures` tries. */
const sse = [...apiNames, ...profileNames].filter((name) => name !== "bedrock-converse");

describe.each(sse)("%s", (model) => {
  test("a whole answer of broken JSON is none, and a broken event loses its words", async () => {
    const whole = await ask(model, "bad-json");
    expect(whole.status).toBe(503);
    await whole.text();
    const text = await (await ask(model, "bad-json", true)).text();
    expect(text).not.toContain('"content":"1 2 3 4 5 ');
  });

  test.each(["comments", "crlf-framing", "dribble", "random-splits", "ok-no-usage"] as const)(
    "a stream with %s is read",
    async (mode) => {
      const text = await (await ask(model, mode, true)).text();
      const words = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, word]) => word).join("");
      expect(words).toEndWith(" 39 40");
      expect(text).toEndWith("data: [DONE]\n\n");
    },
  );

  test.each(["missing-finish-reason", "error-event-mid-stream", "cut-mid-chunk", "reset"] as const)(
    "a stream with %s does not look whole",
    async (mode) => {
      const response = await ask(model, mode, true);
      const text = await response.text().catch(() => "");
      expect(text).not.toContain('"finish_reason":"stop"');
      expect(text).not.toContain("[DONE]");
    },
  );
});
