/**
 * Reads the first answer of a connection that then closes, as a grammar says it: slow, and written
 * apart from the client. Undefined for what is not valid or could be read in two ways. `text`: Latin-1.
 */
export function referenceAnswer(
  text: string,
): { readonly status: number; readonly body: string } | undefined {
  const head = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?\r\n/.exec(text);
  if (head === null) return undefined;
  const fields: (readonly [string, string])[] = [];
  let rest = text.slice(head[0].length);
  for (;;) {
    if (rest.startsWith("\r\n")) break;
    const line = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)\r\n/.exec(rest);
    if (line === null) return undefined;
    fields.push([(line[1] ?? "").toLowerCase(), (line[2] ?? "").replace(/^[ \t]+|[ \t]+$/g, "")]);
    rest = rest.slice(line[0].length);
  }
  rest = rest.slice(2);
  const status = Number(head[2]);
  const lengths = valuesOf(fields, "content-length");
  const encodings = valuesOf(fields, "transfer-encoding");
  if (lengths.length + encodings.length > 1) return undefined;
  if (lengths.some((length) => !/^\d{1,15}$/.test(length))) return undefined;
  if (encodings.some((encoding) => encoding.toLowerCase() !== "chunked")) return undefined;
  if (status === 101) return undefined;
  if (status < 200) return referenceAnswer(rest);
  const [length] = lengths;
  if (status === 204 || status === 304) return { status, body: "" };
  if (length !== undefined) {
    return rest.length < Number(length)
      ? undefined
      : { status, body: rest.slice(0, Number(length)) };
  }
  if (encodings.length === 0) return { status, body: rest };
  if (head[1] === "0") return undefined;
  const body = referenceChunks(rest);
  return body === undefined ? undefined : { status, body };
}

function valuesOf(fields: readonly (readonly [string, string])[], wanted: string): string[] {
  return fields.filter(([name]) => name === wanted).map(([, value]) => value);
}

function referenceChunks(text: string): string | undefined {
  let body = "";
  let rest = text;
  for (;;) {
    const line = /^([0-9A-Fa-f]+)(?:;[\t\x20-\x7e\x80-\xff]*)?\r\n/.exec(rest);
    if (line === null) return undefined;
    const size = Number.parseInt(line[1] ?? "", 16);
    rest = rest.slice(line[0].length);
    if (size === 0) {
      return /^(?:[\t\x20-\x7e\x80-\xff]+\r\n)*\r\n/.test(rest) ? body : undefined;
    }
    if (rest.length < size + 2 || rest.slice(size, size + 2) !== "\r\n") return undefined;
    body += rest.slice(0, size);
    rest = rest.slice(size + 2);
  }
}
