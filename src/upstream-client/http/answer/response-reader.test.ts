import { describe, expect, test } from "bun:test";
import { answerOf, splits } from "../../../../test/support/read-answer.ts";

const head = (lines: string): string => `HTTP/1.1 200 OK\r\n${lines}\r\n`;
const chunked = (body: string): string => `${head("Transfer-Encoding: chunked\r\n")}${body}`;

describe.each(["at once", "byte by byte"] as const)("bytes that come %s:", (how) => {
  const read = (text: string, isClosed = false) =>
    answerOf(how === "at once" ? [text] : splits(text), { isClosed });

  test.each([
    ["a length", head("Content-Length: 5\r\n") + "hello", "hello"],
    ["no body", head("Content-Length: 0\r\n"), ""],
    ["chunks", chunked("3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"), "hello"],
    ["chunks with extensions", chunked('5;a=b;c="d e"\r\nhello\r\n0;x\r\n\r\n'), "hello"],
    ["chunks with trailers", chunked("5\r\nhello\r\n0\r\nX-Sum: 1\r\nY: 2\r\n\r\n"), "hello"],
    [
      "sizes in upper and lower case",
      chunked(`A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n`),
      "01234567890123456789",
    ],
    ["a status without a reason", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", "ok"],
    [
      "interim answers before it",
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n${head("Content-Length: 2\r\n")}ok`,
      "ok",
    ],
    ["blanks around values", head("Content-Length:\t 2 \t\r\n") + "ok", "ok"],
    ["an empty value", head("X:\r\nContent-Length: 2\r\n") + "ok", "ok"],
    ["no body for its status", "HTTP/1.1 204 No Content\r\n\r\n", ""],
  ])("an answer with %s", (_, text, body) => {
    expect(read(text)).toMatchObject({ body, isOver: true, error: undefined, isSurplus: false });
  });

  test("an answer that ends with its connection", () => {
    const text = `${head("X: 1\r\n")}hello`;
    expect(read(text)).toMatchObject({ body: "hello", isOver: false });
    expect(read(text, true)).toMatchObject({ body: "hello", isOver: true, keepsOpen: false });
  });

  test.each([
    ["keeps", "", true],
    ["closes", "Connection: close\r\n", false],
    ["closes, in a list", "Connection: X-Other, Close\r\n", false],
    ["keeps, though it says so", "Connection: keep-alive\r\n", true],
  ])("a server of HTTP/1.1 %s its connection", (_, line, keepsOpen) => {
    expect(read(`${head(`${line}Content-Length: 0\r\n`)}`).keepsOpen).toBe(keepsOpen);
  });

  test.each([
    ["closes", "", false],
    ["keeps", "Connection: Keep-Alive\r\n", true],
  ])("a server of HTTP/1.0 %s its connection", (_, line, keepsOpen) => {
    const text = `HTTP/1.0 200 OK\r\n${line}Content-Length: 2\r\n\r\nok`;
    expect(read(text)).toMatchObject({ body: "ok", keepsOpen });
  });

  test("what comes after an answer is told, and is no part of it", () => {
    const text = `${head("Content-Length: 2\r\n")}ok${head("Content-Length: 3\r\n")}bad`;
    expect(read(text)).toMatchObject({
      body: "ok",
      isOver: true,
      isSurplus: true,
      keepsOpen: false,
    });
    const second = chunked("2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n");
    expect(read(second)).toMatchObject({ body: "ok", isOver: true, isSurplus: true });
  });

  test.each([
    ["two lengths", head("Content-Length: 2\r\nContent-Length: 3\r\n") + "ok"],
    ["the same length twice", head("Content-Length: 2\r\nContent-Length: 2\r\n") + "ok"],
    ["a list of lengths", head("Content-Length: 2, 2\r\n") + "ok"],
    ["a length and chunks", head("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n") + "ok"],
    ["a negative length", head("Content-Length: -2\r\n") + "ok"],
    ["a length with a sign", head("Content-Length: +2\r\n") + "ok"],
    ["a hexadecimal length", head("Content-Length: 0x2\r\n") + "ok"],
    ["an empty length", head("Content-Length:\r\n") + "ok"],
    ["a length beyond all numbers", head("Content-Length: 99999999999999999999\r\n") + "ok"],
    ["another encoding", head("Transfer-Encoding: gzip, chunked\r\n") + "0\r\n\r\n"],
    ["an encoding that is not the last", head("Transfer-Encoding: chunked, identity\r\n")],
    ["two encodings", head("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")],
    ["a blank before the colon", head("Content-Length : 2\r\n") + "ok"],
    ["a folded line", head("X: 1\r\n 2\r\nContent-Length: 2\r\n") + "ok"],
    ["a line without a colon", head("nothing\r\n")],
    ["a line without a name", head(": nothing\r\n")],
    ["a bare line feed", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok"],
    ["a bare line feed among others", head("X: 1\nContent-Length: 2\r\n") + "ok"],
    ["a bare line feed at the end", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\nok"],
    ["a bare carriage return in a value", head("X: 1\rY: 2\r\n")],
    ["a zero byte in a value", head("X: \0\r\n")],
    ["a control character in the reason", "HTTP/1.1 200 O\u0001K\r\n\r\n"],
    ["another protocol", "SSH-2.0-OpenSSH_9.0\r\n"],
    ["another version", "HTTP/2.0 200 OK\r\n\r\n"],
    ["a version in lower case", "http/1.1 200 OK\r\n\r\n"],
    ["a status of two digits", "HTTP/1.1 20 OK\r\n\r\n"],
    ["a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n"],
    ["a status out of range", "HTTP/1.1 999 OK\r\n\r\n"],
    ["an empty line before it", `\r\n${head("Content-Length: 2\r\n")}ok`],
    ["a change of protocol", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"],
    ["interim answers without end", "HTTP/1.1 100 Continue\r\n\r\n".repeat(9)],
    ["a body where none may be", "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok"],
    ["chunks of HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["a chunk size that is none", chunked("x\r\n")],
    ["a chunk size with a sign", chunked("-1\r\n")],
    ["a chunk size with a prefix", chunked("0x2\r\nok\r\n0\r\n\r\n")],
    ["an empty chunk size", chunked("\r\nok\r\n")],
    ["a chunk size with a blank", chunked("2 \r\nok\r\n0\r\n\r\n")],
    ["a chunk size beyond all numbers", chunked("fffffffffffffffff\r\nok")],
    ["a chunk size of too many zeros", chunked("000000000000000002\r\nok\r\n0\r\n\r\n")],
    ["a chunk size that ends with a bare line feed", chunked("2\nok\r\n0\r\n\r\n")],
    ["a chunk that is longer than its size", chunked("2\r\noky\r\n0\r\n\r\n")],
    ["a chunk that ends with a bare line feed", chunked("2\r\nok\n0\r\n\r\n")],
    ["a chunk extension with a line feed", chunked("2;a\n\r\nok\r\n0\r\n\r\n")],
    ["an endless chunk extension", chunked(`2;${"a".repeat(5_000)}`)],
    ["endless trailers", chunked(`0\r\n${"a: b\r\n".repeat(2_000)}`)],
    ["a trailer with a bare line feed", chunked("0\r\na: b\n\r\n")],
    ["an endless head", `HTTP/1.1 200 OK\r\n${"a: b\r\n".repeat(20_000)}`],
    ["an endless line", `HTTP/1.1 200 OK\r\na: ${"b".repeat(70_000)}`],
    ["too many fields", `${head("a: b\r\n".repeat(300))}`],
  ])("an answer with %s is refused", (_, text) => {
    const { error, body } = read(text);
    expect(error).toBeDefined();
    expect(["", "ok"]).toContain(body);
  });

  test.each([
    ["in the head", "HTTP/1.1 200 OK\r\nContent-"],
    ["before the body", head("Content-Length: 5\r\n")],
    ["in the body", `${head("Content-Length: 5\r\n")}hel`],
    ["in a chunk", chunked("5\r\nhel")],
    ["between chunks", chunked("5\r\nhello\r\n")],
    ["before the end of the trailers", chunked("5\r\nhello\r\n0\r\n")],
  ])("an answer that is cut %s is refused", (_, text) => {
    expect(read(text, true).error).toContain("closed before the answer was complete");
  });
});

test("a header is found in any case, and joined if it comes several times", () => {
  const { headers } = answerOf([head("X-ID: a b \r\nx-id:\tc\r\nContent-Length: 0\r\n")], {});
  expect([headers?.get("x-id"), headers?.get("x-i"), headers?.get("content-length")]).toEqual([
    "a b, c",
    null,
    "0",
  ]);
});

test("chunks that came in one read are one piece", () => {
  const { pieces } = answerOf([chunked("3\r\nhel\r\n2\r\nlo\r\n1\r\n!\r\n0\r\n\r\n")], {});
  expect(pieces).toEqual(["hello!"]);
});
