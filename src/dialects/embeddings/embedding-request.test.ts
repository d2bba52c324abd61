import { expect, test } from "bun:test";
import { parseEmbeddingRequest } from "./embedding-request.ts";

function inputsOf(input: unknown): unknown {
  return parseEmbeddingRequest({ model: "m", input }).inputs;
}

test("one text is one input", () => {
  expect(inputsOf("hi")).toEqual(["hi"]);
});

test("one list of token ids is one input", () => {
  expect(inputsOf([0, 15339, 1917])).toEqual([[0, 15339, 1917]]);
});

test("texts and lists of token ids are kept as the body has them", () => {
  const texts = ["a", "b", " "];
  const tokens = [[1, 2], [3]];
  expect(inputsOf(texts)).toBe(texts);
  expect(inputsOf(tokens)).toBe(tokens);
});

test("texts and lists of parts may come together, and are kept as the body has them", () => {
  const url = "data:image/png;base64,iVBORw0KGgo=";
  const inputs = ["a", { content: [{ type: "image_url", image_url: { url } }] }];
  expect(inputsOf(inputs)).toBe(inputs);
});

test("2048 inputs fit", () => {
  expect(inputsOf(Array.from({ length: 2048 }, () => "a"))).toHaveLength(2048);
  expect(inputsOf(Array.from({ length: 2048 }, () => [1]))).toHaveLength(2048);
});

test("a list of token ids inside a batch may be longer than a batch", () => {
  expect(inputsOf([Array.from({ length: 8192 }, () => 1)])).toHaveLength(1);
});

test("absent and null options mean the defaults", () => {
  const expected = {
    model: "m",
    inputs: ["hi"],
    dimensions: undefined,
    user: undefined,
    inputType: undefined,
    encodingFormat: undefined,
  };
  const body = { model: "m", input: "hi" };
  expect(parseEmbeddingRequest(body)).toStrictEqual({ ...expected, sent: body });
  const nulls = { ...body, encoding_format: null, dimensions: null, user: null };
  expect(parseEmbeddingRequest(nulls)).toStrictEqual({ ...expected, sent: nulls });
});

test("given options are read, unknown ones kept beside them", () => {
  const body = {
    model: "m",
    input: "hi",
    encoding_format: "base64",
    dimensions: 256,
    user: "u",
    input_type: "query",
    task: "retrieval",
  };
  expect(parseEmbeddingRequest(body)).toStrictEqual({
    model: "m",
    inputs: ["hi"],
    dimensions: 256,
    user: "u",
    inputType: "query",
    encodingFormat: "base64",
    sent: body,
  });
});
