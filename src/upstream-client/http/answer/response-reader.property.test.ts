import { expect, test } from "bun:test";
import fc from "fast-check";
import { answerOf } from "../../../../test/support/read-answer.ts";
import { referenceAnswer } from "../../../../test/support/reference-answer.ts";

const wordCharacters = "abcXYZ019-_";
const word = fc.string({
  unit: fc.constantFrom(...Array.from(wordCharacters)),
  minLength: 1,
  maxLength: 12,
});
const field = fc.tuple(
  word.map((name) => `x-${name}`),
  fc.string({ unit: fc.constantFrom(...Array.from('abc ;=\t,"\u00e9')), maxLength: 20 }),
);
const latin1 = fc
  .uint8Array({ maxLength: 300 })
  .map((bytes) => Buffer.from(bytes).toString("latin1"));

const interim = fc.constantFrom(
  "",
  "HTTP/1.1 100 Continue\r\n\r\n",
  "HTTP/1.1 102 P\r\nA: b\r\n\r\n",
);

function headOf(status: number, fields: readonly (readonly [string, string])[]): string {
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Some Reason\r\n${lines.join("")}\r\n`;
}

const extension = fc.constantFrom("", ";a", ";a=b", ';a="b c"');
const framed = fc.oneof(
  latin1.map((body) => ({ body, line: ["Content-Length", String(body.length)], wire: body })),
  latin1.map((body) => ({ body, line: ["Connection", "close"], wire: body })),
  fc
    .tuple(fc.array(fc.tuple(latin1, extension, fc.boolean())), fc.array(field, { maxLength: 2 }))
    .map(([chunks, trailers]) => {
      const parts = chunks.filter(([data]) => data !== "");
      const sized = parts.map(([data, more, isUpper]) => {
        const size = data.length.toString(16);
        return `${isUpper ? size.toUpperCase() : `0${size}`}${more}\r\n${data}\r\n`;
      });
      const end = `0\r\n${trailers.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
      return {
        body: parts.map(([data]) => data).join(""),
        line: ["transfer-encoding", "CHUNKED"],
        wire: `${sized.join("")}${end}`,
      };
    }),
);

const answer = fc
  .tuple(interim, fc.constantFrom(200, 404, 503), fc.array(field, { maxLength: 5 }), framed)
  .map(
    ([
      before,
      status,
      fields,
      {
        body,
        line: [name = "", value = ""],
        wire,
      },
    ]) => ({
      status,
      body,
      text: `${before}${headOf(status, [...fields, [name, value]])}${wire}`,
    }),
  );

/** Cuts a text at places given as shares of its length. */
function cut(text: string, shares: readonly number[]): readonly string[] {
  const places = shares.map((share) => Math.floor(share * text.length)).toSorted((a, b) => a - b);
  return [0, ...places].map((start, index) => text.slice(start, places[index]));
}

const shares = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 12 });

test("any split of any valid answer decodes to the same", () => {
  fc.assert(
    fc.property(answer, shares, ({ status, body, text }, places) => {
      const read = answerOf(cut(text, places), { isClosed: true });
      expect(read.error).toBeUndefined();
      expect([read.status, read.body, read.isOver]).toEqual([status, body, true]);
    }),
    { numRuns: 2_000 },
  );
});

/** What attackers, broken servers and broken intermediaries put anywhere. */
const disturbances = [
  ...Array.from("\r\n \t:;,\0"),
  "\r\n",
  "\n\n",
  "\r\n\r\n",
  "0\r\n\r\n",
  "Content-Length: 3\r\n",
  "Transfer-Encoding: chunked\r\n",
  "HTTP/1.1 200 OK\r\n",
  "ffffffffffffffff",
  "\u007f",
  "\u00ff",
  "-1",
  "+",
  "0x",
];

const disturbed = fc
  .tuple(
    answer,
    fc.array(
      fc.record({
        at: fc.double({ min: 0, max: 1, noNaN: true }),
        removed: fc.constantFrom(0, 0, 1, 2, 5),
        added: fc.constantFrom("", ...disturbances),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  )
  .map(([{ text }, changes]) =>
    changes.reduce((changed, { at, removed, added }) => {
      const place = Math.floor(at * changed.length);
      return changed.slice(0, place) + added + changed.slice(place + removed);
    }, text),
  );

test("a disturbed answer is read as the rules say, or refused, however it is split", () => {
  fc.assert(
    fc.property(disturbed, shares, (text, places) => {
      const whole = answerOf([text], { isClosed: true });
      const split = answerOf(cut(text, places), { isClosed: true });
      expect([split.error === undefined, split.isOver]).toEqual([
        whole.error === undefined,
        whole.isOver,
      ]);
      const wanted = referenceAnswer(text);
      // Stricter than the rules is allowed; more lenient is not.
      if (whole.error !== undefined) return;
      expect(split.body).toBe(whole.body);
      expect({ status: whole.status, body: whole.body }).toEqual({
        status: wanted?.status,
        body: wanted?.body ?? "",
      });
    }),
    { numRuns: 10_000, seed: 20_261_123 },
  );
});

test("any bytes are read without a hang or another error", () => {
  const noise = fc.oneof(
    latin1,
    latin1.map((bytes) => `HTTP/1.1 200 OK\r\n${bytes}`),
    latin1.map((bytes) => `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${bytes}`),
    fc
      .array(fc.constantFrom("1", "a", "\r\n", ";", "\n", "\r", "0", "f".repeat(12)))
      .map((parts) => `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${parts.join("")}`),
  );
  fc.assert(
    fc.property(noise, shares, (text, places) => {
      const whole = answerOf([text], { isClosed: true });
      const split = answerOf(cut(text, places), { isClosed: true });
      expect(split.error === undefined).toBe(whole.error === undefined);
      if (whole.error === undefined) {
        expect(whole.body).toBe(referenceAnswer(text)?.body ?? "\0refused");
      }
    }),
    { numRuns: 5_000, seed: 20_261_124 },
  );
});
