import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { parseStrictJson } from "./strict-json.ts";

function parse(text: string): unknown {
  return parseStrictJson(new TextEncoder().encode(text));
}

function refusalOf(body: string | Uint8Array): GatewayError {
  try {
    parseStrictJson(typeof body === "string" ? new TextEncoder().encode(body) : body);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("was not refused");
}

test("unambiguous JSON is read as JSON.parse reads it", () => {
  const values = fc.jsonValue({ maxDepth: 8 }).filter((value) => !hasProto(value));
  fc.assert(
    fc.property(values, fc.constantFrom(undefined, 2), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      expect(parse(text)).toEqual(JSON.parse(text));
    }),
  );
});

function hasProto(value: unknown): boolean {
  return JSON.stringify(value).includes("__proto__");
}

describe("a name twice in one object is refused:", () => {
  test.each([
    '{"a":1,"a":1}',
    '{"b":{"a":1,"c":[{"a":1}],"a":2}}',
    '{"a":1,"\\u0061":2}',
    '[{"x":1},{"x":1,"y":[],"x":1}]',
    '{"a,b":1,"a,b":2}',
    '{"":1,"":2}',
    '{"role":"auditor" , "name":"}{][:,\\"", "role":"operator"}',
  ])("%s", (text) => {
    const error = refusalOf(text);
    expect(error.status).toBe(400);
    expect(error.message).toContain("more than once");
  });
});

test.each([
  '{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]}',
  '["a","a"]',
  '{"a":"b","b":"a"}',
  '{"a":["x","x"],"b":["x"]}',
  '{"a":{},"b":{}}',
])("the same text in several places is fine: %s", (text) => {
  expect(parse(text)).toEqual(JSON.parse(text));
});

test.each(['{"__proto__":{"role":"operator"}}', '{"a":[{"\\u005f_proto__":1}]}'])(
  "the name of the prototype is refused: %s",
  (text) => {
    const error = refusalOf(text);
    expect([error.status, error.message.includes("__proto__")]).toEqual([400, true]);
  },
);

test("a value that reads __proto__ is a value", () => {
  expect(parse('{"name":"__proto__"}')).toEqual({ name: "__proto__" });
  expect(parse('{"names":["a","__proto__"]}')).toEqual({ names: ["a", "__proto__"] });
  expect(parse('{"a:b":"c:\\"d:"}')).toEqual({ "a:b": 'c:"d:' });
});

test.each(["", " ", "{", '{"a"', '"', '{"a\\', "nul", "{'a':1}", '{"a":1,}', "[1]]", '{"\\x":1}'])(
  "what is no JSON is refused: %j",
  (text) => {
    const error = refusalOf(text);
    expect([error.status, error.code]).toEqual([400, null]);
    expect(error.row.when).toContain("not JSON");
  },
);

test.each(['{"a":"\\ud800"}', '{"\\uDFFF":1}', '["x\\udc00\\ud800y"]'])(
  "half of a surrogate pair is no text: %s",
  (text) => {
    const error = refusalOf(text);
    expect([error.status, error.message.includes("UTF-8")]).toEqual([400, true]);
  },
);

test.each(['{"a":"\\ud83d\\ude00"}', String.raw`["\\ud800"]`])("but %s is", (text) => {
  expect(parse(text)).toEqual(JSON.parse(text));
});

test("bytes that are not UTF-8 are refused", () => {
  expect(refusalOf(Uint8Array.of(0x22, 0xc3, 0x28, 0x22)).status).toBe(400);
});

test("any text gives a value or a refusal, in one scan", () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom("{", "}", "[", "]", ",", ":", '"', "\\", "a", "1")),
      (tokens) => {
        const text = tokens.join("");
        try {
          expect(parse(text)).toEqual(JSON.parse(text));
        } catch (error) {
          expect(error).toBeInstanceOf(GatewayError);
        }
      },
    ),
  );
  // A scan that began again at each quote would not end within this test's time.
  expect(refusalOf('"' + '\\"'.repeat(500_000)).status).toBe(400);
});
