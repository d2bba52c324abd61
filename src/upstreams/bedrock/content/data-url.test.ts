import { expect, test } from "bun:test";
import { byteLengthOf, parseDataUrl } from "./data-url.ts";

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
