import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { checkChatRequest } from "../openai-chat/chat-request.ts";
import { restoreSeed } from "./exact-integers.ts";

const rest = '"model":"m","messages":[{"role":"user","content":"hi"}]';

function sendOn(bodyText: string): string {
  return JSON.stringify(restoreSeed(checkChatRequest(JSON.parse(bodyText)), bodyText));
}

describe("a seed beyond 2^53", () => {
  test("is passed on exactly", () => {
    for (const seed of ["9223372036854775807", "-9223372036854775808", "9007199254740993"]) {
      expect(sendOn(`{${rest},"seed":${seed}}`)).toBe(`{${rest},"seed":${seed}}`);
    }
  });

  test("is found between white space, and before other fields", () => {
    const seed = "12345678901234567890";
    expect(sendOn(`\n{ "seed"\t:\r\n ${seed} ,${rest}}`)).toBe(`{"seed":${seed},${rest}}`);
  });

  test("is found beyond megabytes of white space, wherever it is", () => {
    const space = " ".repeat(2_000_000);
    const seed = "12345678901234567890";
    const texts = [
      `{${space}"seed":${seed},`,
      `{"seed"${space}:${seed},`,
      `{"seed":${space}${seed},`,
    ];
    for (const text of texts) expect(sendOn(`${text}${rest}}`)).toBe(`{"seed":${seed},${rest}}`);
  });

  test("is the last of several, as for any JSON parser", () => {
    const sent = sendOn(`{"seed":9007199254740993,${rest},"seed":9007199254740995}`);
    expect(sent).toContain('"seed":9007199254740995');
  });

  test("is not mistaken for one in a string, a list or a nested object", () => {
    const decoys = [
      String.raw`"a":"\"seed\":1"`,
      String.raw`"b":"\\","c":"{\"seed\":2"`,
      '"d":{"seed":3}',
      '"e":["seed",4]',
      '"f":[{"seed":5}]',
      '"g":"seed"',
      '"seeds":6',
      '"h":"}]"',
    ].join(",");
    const sent = sendOn(`{${decoys},"seed":9007199254740993,${rest},${decoys}}`);
    expect(sent).toContain('"seed":9007199254740993,"model"');
  });
});

test("a seed that is exact, null or absent leaves the request itself", () => {
  for (const seed of ["0", "-1", "1.0", "9007199254740991", "null"]) {
    const text = `{${rest},"seed":${seed}}`;
    const request = checkChatRequest(JSON.parse(text));
    expect(restoreSeed(request, text)).toBe(request);
  }
  const request = checkChatRequest(JSON.parse(`{${rest}}`));
  expect(restoreSeed(request, `{${rest}}`)).toBe(request);
});

test("any neighbours leave a large seed intact", () => {
  const seeds = fc.bigInt({ min: 2n ** 53n, max: 2n ** 64n });
  const neighbours = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 4 });
  fc.assert(
    fc.property(seeds, neighbours, neighbours, (seed, before, after) => {
      const members = [innerText(before), `"seed":${seed}`, rest, `"x":${JSON.stringify(after)}`];
      const sent = sendOn(`{${members.filter(Boolean).join(",")}}`);
      const isSafe = Number.isSafeInteger(Number(seed));
      expect(sent).toContain(isSafe ? `"seed":${Number(seed)}` : `"seed":${seed}`);
    }),
    { numRuns: 500 },
  );
});

/** Leaves out fields that a chat request knows, because those have rules of their own. */
function innerText(fields: Record<string, unknown>): string {
  const renamed = Object.entries(fields).map(([name, value]) => [`~${name}`, value]);
  return JSON.stringify(Object.fromEntries(renamed)).slice(1, -1);
}
