import { connect, type Socket } from "node:net";

export interface RawAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

/** Far longer than any answer takes; only a hung server exceeds it. */
const patienceMs = 60_000;

/** A TCP connection that sends exact bytes and reads HTTP answers one by one. */
export class RawConnection implements Disposable {
  readonly #socket: Socket;
  #received = Buffer.alloc(0);
  #isClosed = false;
  #wake: () => void = () => undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (bytes: Buffer) => {
      this.#received = Buffer.concat([this.#received, bytes]);
      this.#wake();
    });
    const onEnd = (): void => {
      this.#isClosed = true;
      this.#wake();
    };
    socket.on("end", onEnd);
    socket.on("close", onEnd);
    socket.on("error", onEnd);
  }

  static open(port: number): Promise<RawConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1", () => resolve(new RawConnection(socket)));
      socket.once("error", reject);
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Text as one byte a character, so that any byte can be written. */
  write(data: string | Uint8Array): void {
    this.#socket.write(typeof data === "string" ? Buffer.from(data, "latin1") : data);
  }

  pause(): void {
    this.#socket.pause();
  }

  /** Reads after `pause`, until more has come than the system holds for a reader that pauses. */
  readOn(): Promise<void> {
    const systemBytes = 16 * 1024 * 1024;
    let bytes = 0;
    this.#socket.removeAllListeners("data");
    return new Promise((resolve) => {
      this.#socket.on("data", (piece: Buffer) => {
        bytes += piece.byteLength;
        if (bytes > systemBytes) resolve();
      });
      this.#socket.resume();
    });
  }

  /** The next answer, also after it a closed connection; undefined when it is closed without one. */
  async answer(method = "GET"): Promise<RawAnswer | undefined> {
    const deadline = Date.now() + patienceMs;
    for (;;) {
      const parsed = parseAnswer(this.#received, { method, isClosed: this.#isClosed });
      if (parsed !== undefined) {
        this.#received = this.#received.subarray(parsed.length);
        return parsed.answer;
      }
      if (this.#isClosed) return undefined;
      await this.#change(deadline);
    }
  }

  /** Resolves when the received bytes contain this text so many times, with all received text. */
  async until(text: string, times = 1): Promise<string> {
    const deadline = Date.now() + patienceMs;
    for (;;) {
      const received = this.#received.toString("latin1");
      if (received.split(text).length > times) return received;
      if (this.#isClosed) throw new Error(`closed before ${JSON.stringify(text)}`);
      await this.#change(deadline);
    }
  }

  /** Resolves when the server has closed the connection. Throws when it does not. */
  async closed(): Promise<void> {
    const deadline = Date.now() + patienceMs;
    while (!this.#isClosed) await this.#change(deadline);
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }

  #change(deadline: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const rest = Math.max(1, deadline - Date.now());
      const timer = setTimeout(() => {
        const got = this.#received.subarray(0, 400).toString("latin1");
        reject(new Error(`neither an answer nor a close; received: ${JSON.stringify(got)}`));
      }, rest);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

interface ParsedAnswer {
  readonly answer: RawAnswer;
  readonly length: number;
}

interface Parsing {
  readonly method: string;
  readonly isClosed: boolean;
}

function parseAnswer(bytes: Buffer, parsing: Parsing): ParsedAnswer | undefined {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd === -1) return undefined;
  const [statusLine = "", ...lines] = bytes.subarray(0, headEnd).toString("latin1").split("\r\n");
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1]);
  const headers = new Headers();
  for (const line of lines) {
    const colon = line.indexOf(":");
    headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  const head = { status, headers };
  const start = headEnd + 4;
  const hasBody = parsing.method !== "HEAD" && status >= 200 && status !== 204 && status !== 304;
  if (!hasBody) return { answer: { ...head, body: "" }, length: start };
  if (headers.get("transfer-encoding") === "chunked") {
    const body = parseChunks(bytes, start);
    return body && { answer: { ...head, body: body.text }, length: body.end };
  }
  const declared = headers.get("content-length");
  if (declared === null && !parsing.isClosed) return undefined;
  const end = declared === null ? bytes.length : start + Number(declared);
  if (bytes.length < end) return undefined;
  return { answer: { ...head, body: bytes.subarray(start, end).toString() }, length: end };
}

function parseChunks(bytes: Buffer, start: number): { text: string; end: number } | undefined {
  const parts: Buffer[] = [];
  let place = start;
  for (;;) {
    const lineEnd = bytes.indexOf("\r\n", place);
    if (lineEnd === -1) return undefined;
    const size = Number.parseInt(bytes.subarray(place, lineEnd).toString("latin1"), 16);
    const end = lineEnd + 2 + size;
    if (bytes.length < end + 2) return undefined;
    if (size === 0) return { text: Buffer.concat(parts).toString(), end: end + 2 };
    parts.push(bytes.subarray(lineEnd + 2, end));
    place = end + 2;
  }
}
