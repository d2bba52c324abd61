import { expect, test } from "bun:test";
import fc from "fast-check";
import { DocumentNames } from "./document-names.ts";

test("a name loses its extension and characters that the provider refuses", () => {
  const names = new DocumentNames();
  expect(names.nameFor("Q3 report_final.v2.PDF")).toBe("Q3 report-final-v2");
  expect(names.nameFor("a \t b.txt")).toBe("a b");
  expect(names.nameFor("")).toBe("document");
  expect(names.nameFor(".pdf")).toBe("document (2)");
});

test("counts skip taken names", () => {
  const names = new DocumentNames();
  expect(["a (2).txt", "a.txt", "a.md", "a.txt", "a (2).pdf"].map((n) => names.nameFor(n))).toEqual(
    ["a (2)", "a", "a (3)", "a (4)", "a (2) (2)"],
  );
});

test("a name that is repeated very often becomes unique without counting from the start", () => {
  const names = new DocumentNames();
  const sent = new Set<string>();
  for (let count = 0; count < 200_000; count += 1) sent.add(names.nameFor("a.txt"));
  expect(sent.size).toBe(200_000);
});

test("any names become valid and unique", () => {
  const anyName = fc.oneof(fc.string(), fc.string({ unit: "binary", maxLength: 400 }));
  const property = fc.property(fc.array(anyName, { maxLength: 20 }), (filenames) => {
    const names = new DocumentNames();
    const sent = filenames.map((filename) => names.nameFor(filename));
    expect(new Set(sent).size).toBe(sent.length);
    for (const name of sent) {
      expect(name).toMatch(/^[a-zA-Z0-9 ()[\]-]{1,200}$/);
      expect(name).not.toMatch(/ {2}|^ | $/);
    }
  });
  fc.assert(property);
});
