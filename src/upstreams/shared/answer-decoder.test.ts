import { expect, test } from "bun:test";
import { inPieces } from "./answer-decoder.ts";

test("fields beside the arguments of a call go out once, however long the arguments are", () => {
  const extra = { call: { signature: "a" }, body: undefined };
  const about = { type: "tool-call-delta", choice: 0, call: 0 } as const;
  const long = inPieces([{ ...about, arguments: "x".repeat(1_100), extra }]);
  expect(long.map((event) => ("extra" in event ? event.extra : undefined))).toEqual([
    extra,
    undefined,
    undefined,
  ]);
  expect(inPieces([{ ...about, arguments: "", extra }])).toEqual([
    { ...about, arguments: "", extra },
  ]);
});
