import { expect, test } from "bun:test";
import { WholeBody } from "./whole-body.ts";

const limits = { answerLimitBytes: 1_000, answerValues: 100 };

function collect(text: string, pieceBytes: number): string | undefined {
  const body = new WholeBody(limits);
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    body.take(bytes.subarray(at, at + pieceBytes));
  }
  return body.end();
}

test("a body that begins as JSON is taken, for any split", () => {
  for (const json of ['{"a":"é"}', '[{"error":{"message":"ü"}}]']) {
    for (let pieceBytes = 1; pieceBytes <= 30; pieceBytes += 1) {
      for (const start of ["", " \r\n\t", "\uFEFF"]) {
        expect(JSON.parse(collect(start + json, pieceBytes) ?? "")).toEqual(JSON.parse(json));
      }
    }
  }
});

test("a stream is not taken, also when JSON comes later", () => {
  for (const text of ["data: {}\n\n", ": comment\n{", "\uFEFFdata: {}\n\n", "\n\nevent: x\n{"]) {
    for (const pieceBytes of [1, 3, 100]) expect(collect(text, pieceBytes)).toBeUndefined();
  }
});

test("a body over a limit is refused, and no longer kept", () => {
  expect(() => collect(`{"a":"${"x".repeat(1_000)}"}`, 10)).toThrow("more than 1000 bytes");
  expect(() => collect(`[${"1,".repeat(120)}1]`, 7)).toThrow("more than 100 values");
  expect(() => collect("[".repeat(200), 7)).toThrow("nests too deeply");
});
