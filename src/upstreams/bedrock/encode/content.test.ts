import fc from "fast-check";
import { expect, test } from "bun:test";
import { byteLengthOf, parseDataUrl } from "../../../domain/chat/data-url.ts";
import { DocumentNames } from "./content.ts";

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

test("media type and data are separated", () => {
  expect(parseDataUrl("data:image/PNG;name=a.png;base64,AAAA")).toEqual({
    mediaType: "image/png",
    base64: "AAAA",
  });
  expect(parseDataUrl("DATA:;BASE64,AA==")).toEqual({ mediaType: "", base64: "AA==" });
});

test("data without base64 are percent-encoded text", () => {
  expect(parseDataUrl("data:text/plain,a%20%C3%BC")).toEqual({
    mediaType: "text/plain",
    base64: Buffer.from("a ü").toString("base64"),
  });
});

test("other addresses and invalid data are refused", () => {
  const others = [
    "https://example.com/a,b",
    "data:image/png;base64",
    "data:image/png;base64,",
    "data:,",
    "data:,%zz",
    "data:image/png;base64,AAA",
    "data:image/png;base64,A===",
    "data:image/png;base64,AA==AAAA",
    "data:image/png;base64,AA-_",
    "data:image/png;base64,AAAA\n",
  ];
  for (const url of others) expect(parseDataUrl(url)).toBeUndefined();
});

test("the length is that of the bytes", () => {
  for (const length of [1, 2, 3, 4, 5, 6, 1_000]) {
    expect(byteLengthOf(Buffer.alloc(length).toString("base64"))).toBe(length);
  }
});
