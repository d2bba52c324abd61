import { describe, expect, test } from "bun:test";
import type { ConfigProblem } from "../problems/problem.ts";
import { parseYaml } from "./yaml-tree.ts";

function value(text: string): unknown {
  const result = parseYaml(text);
  if (!result.ok) throw new Error(result.problems.map(({ message }) => message).join());
  return result.tree.value;
}

function problems(text: string): readonly ConfigProblem[] {
  const result = parseYaml(text);
  return result.ok ? [] : result.problems;
}

describe("parseYaml", () => {
  test.each([
    ["", 1, "is empty"],
    ["# only a comment\n", 1, "is empty"],
    ["---\n", 1, "is empty"],
    ["- a\n- b\n", 1, "must be a map"],
    ["just text", 1, "must be a map"],
    ["a: 1\nb: 2\na: 3\n", 3, "duplicate key"],
    ["a:\n\tb: 1\n", 2, "tab"],
    ["a: 1\n---\nb: 1\n", 2, "second document"],
    ["a: b: c\n", 1, "second ': '"],
    ["a: @b\n", 1, "reserves"],
    ["a: 'b\n", 1, "the quote that opens here is not closed"],
    ["a: [1\nb: 2\n", 2, "a bracket is not closed"],
    ["a: 1\nb: !thing 2\n", 2, "tags"],
    ["a: !!binary YQ==\n", 1, "tags"],
    ["a: *b\n", 1, "alias"],
    ["? [a, b]\n: 1\n", 1, "must be text"],
    ["%YAML 1.1\n---\na: no\n", 1, "must be YAML 1.2"],
    ["a: &a [*a]\n", 1, "alias contains itself"],
    [`${"- ".repeat(40)}x`, 1, "nests too deeply"],
    ["[".repeat(20_000), 1, "nests too deeply"],
    ["# x\n".repeat(300_000), 1, "longer than"],
    [`a: [${"1,".repeat(100_001)}]`, 1, "too many values"],
  ])("refuses %j at line %d", (text, line, message) => {
    const [problem] = problems(text);
    expect(problem?.message).toContain(message);
    expect(problem?.line).toBe(line);
  });

  test("refuses aliases that expand to far more than the file contains", () => {
    const lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"];
    for (let level = 1; level < 9; level += 1) {
      const list = Array.from({ length: 10 }, () => `*a${level - 1}`).join(", ");
      lines.push(`a${level}: &a${level} [${list}]`);
    }
    expect(problems(lines.join("\n"))[0]?.message).toContain("expands too many aliases");
  });

  test("expands aliases within the limit", () => {
    expect(value("a: &a { b: 1 }\nc: [*a, *a]\n")).toEqual({
      a: { b: 1 },
      c: [{ b: 1 }, { b: 1 }],
    });
  });

  test("reads words and dates as YAML 1.2 does", () => {
    expect(value("a: NO\nb: on\nc: 2024-10-21\nd: true\ne: 0o17\nf: ~\n")).toEqual({
      a: "NO",
      b: "on",
      c: "2024-10-21",
      d: true,
      e: 15,
      f: null,
    });
  });

  test("skips a byte order mark and takes Windows line ends", () => {
    expect(value("\uFEFFa: 1\r\nb: 2\r\n")).toEqual({ a: 1, b: 2 });
  });

  test("reports one problem a line, and at most twenty", () => {
    const duplicates = Array.from({ length: 60 }, () => "a: 1\n").join("");
    expect(problems(duplicates)).toHaveLength(20);
  });

  test("does not parse the braces of placeholders", () => {
    expect(value("a: { b: ${B}, c: ${C:-x y} }\nd: '${D}'\ne: $${E}\n")).toEqual({
      a: { b: "${B}", c: "${C:-x y}" },
      d: "${D}",
      e: "$${E}",
    });
  });

  test("keeps the characters that hide placeholders", () => {
    expect(value("a: '\uE000\uE001${B}'\n")).toEqual({ a: "\uE000\uE001${B}" });
  });

  test("locates keys, items, contents of aliases, and the nearest ancestor of absent keys", () => {
    const result = parseYaml("a: &x\n  b:\n    - 1\n    - c: 2\nd: *x\n3: 4\n");
    if (!result.ok) throw new Error("must be valid");
    const { locate } = result.tree;
    expect(locate(["a", "b"])).toEqual({ line: 2, column: 3 });
    expect(locate(["a", "b", 1, "c"])).toEqual({ line: 4, column: 7 });
    expect(locate(["a", "b", 7])).toEqual({ line: 2, column: 3 });
    expect(locate(["d", "b", 0])).toEqual({ line: 3, column: 7 });
    expect(locate(["d", "none"])).toEqual({ line: 5, column: 1 });
    expect(locate(["3"])).toEqual({ line: 6, column: 1 });
    expect(locate(["none"])).toEqual({ line: 1, column: 1 });
  });
});
