import { expect, test } from "bun:test";
import { CallOrigins } from "./call-origin.ts";

const one = new CallOrigins("https://one.example/v1");
const other = new CallOrigins("https://other.example/v1");

test("a marked id is its upstream's again, and another's elsewhere", () => {
  const marked = one.marked("call_1");
  expect(marked).toMatch(/^call_1__[\w-]{8}$/);
  expect(one.read(marked)).toEqual({ id: "call_1", author: "this" });
  expect(other.read(marked)).toEqual({ id: marked, author: "another" });
  // A configuration that is read again, or another process.
  expect(new CallOrigins("https://one.example/v1").read(marked).author).toBe("this");
});

test("an id without a mark has no author", () => {
  for (const id of ["call_1", "", "call__short", "call_abcdefgh"]) {
    expect(one.read(id)).toEqual({ id, author: "unknown" });
  }
});

test("a mark makes no id too long for another upstream", () => {
  const long = "function-call-18446744073709551615";
  expect(other.read(one.marked(long))).toEqual({ id: long, author: "another" });
  expect(one.read(one.marked(long))).toEqual({ id: long, author: "this" });
});
