import { expect, test } from "bun:test";
import fc from "fast-check";
import { StopCutter } from "./stop-cutter.ts";

/** The result for a text that comes in these pieces. */
function cutPieces(pieces: readonly string[], sequences: readonly string[]): string {
  const cutter = new StopCutter(sequences);
  let text = "";
  for (const piece of pieces) text += cutter.push(piece);
  return text + cutter.flush();
}

/** The sequence that ends first wins; of sequences with the same end, the one that began first. */
function reference(text: string, sequences: readonly string[]): string {
  for (let end = 1; end <= text.length; end += 1) {
    const written = text.slice(0, end);
    const lengths = sequences.filter((stop) => stop !== "" && written.endsWith(stop));
    if (lengths.length === 0) continue;
    return written.slice(0, end - Math.max(...lengths.map(({ length }) => length)));
  }
  return text;
}

/** Few letters, so that sequences are found, begin within each other and nearly match. */
const letters = fc.string({ unit: fc.constantFrom("a", "b", "\n", "💡") });
const sequences = fc.array(letters, { maxLength: 4 });

test("any split of any text is cut as the text as a whole would be", () => {
  fc.assert(
    fc.property(fc.array(letters), sequences, (pieces, stops) => {
      expect(cutPieces(pieces, stops)).toBe(reference(pieces.join(""), stops));
    }),
    { numRuns: 2_000 },
  );
});

test("what was sent is always a prefix of the result", () => {
  fc.assert(
    fc.property(fc.array(letters), sequences, (pieces, stops) => {
      const cutter = new StopCutter(stops);
      const left = reference(pieces.join(""), stops);
      let sent = "";
      for (const piece of pieces) {
        sent += cutter.push(piece);
        expect(left.startsWith(sent)).toBe(true);
      }
    }),
  );
});

test("only the possible beginning of a sequence is held back", () => {
  const cutter = new StopCutter(["Observation:"]);
  expect(cutter.push("Action: look\nObser")).toBe("Action: look\n");
  expect(cutter.push("ve\nObservation")).toBe("Observe\n");
  expect(cutter.isCut).toBe(false);
  expect(cutter.push(": rain")).toBe("");
  expect(cutter.isCut).toBe(true);
  expect(cutter.push("more")).toBe("");
  expect(cutter.flush()).toBe("");
});

test("text that is held at the end belongs to the result", () => {
  expect(cutPieces(["It says Obs"], ["Observation:"])).toBe("It says Obs");
});

test("sequences are not matched across a flush", () => {
  const cutter = new StopCutter(["ab"]);
  expect([cutter.push("a"), cutter.flush(), cutter.push("b")]).toEqual(["", "a", "b"]);
});

test("empty sequences end nothing", () => {
  expect(cutPieces(["a", "b"], [""])).toBe("ab");
});

test("a long sequence that nearly matches everywhere takes linear time", () => {
  const text = "a".repeat(200_000);
  expect(cutPieces([text], [`${"a".repeat(100_000)}b`])).toBe(text);
});
