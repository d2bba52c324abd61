import { JsonScan } from "../../domain/chat/json-scan.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";

export interface WholeBodyLimits {
  readonly answerLimitBytes: number;
  /** Infinity: the body was checked before. */
  readonly answerValues: number;
}

/** Deeper than any answer: tool schemas and arguments are strings in it. */
const mostDepth = 128;

/**
 * Collects the body of an answer that is JSON instead of a stream: servers answer a request for a
 * stream so, and send errors so with status 200. No stream begins like JSON.
 */
export class WholeBody {
  readonly #limits: WholeBodyLimits;
  readonly #decoder = new TextDecoder();
  readonly #scan: JsonScan | undefined;
  #isStream = false;
  #receivedBytes = 0;
  #text: string | undefined;

  constructor(limits: WholeBodyLimits) {
    this.#limits = limits;
    const { answerValues } = limits;
    const isChecked = answerValues === Infinity;
    this.#scan = isChecked
      ? undefined
      : new JsonScan({ jsonDepth: mostDepth, jsonValues: answerValues });
  }

  /**
   * Whether the next bytes of an answer belong to such a body. Throws `UpstreamFailure` when it
   * exceeds a limit.
   */
  take(bytes: Uint8Array): boolean {
    if (this.#isStream) return false;
    if (this.#text !== undefined) this.#add(bytes);
    else {
      const start = bytes.findIndex((byte) => !beforeJson.has(byte));
      if (start === -1) return false;
      this.#isStream = bytes[start] !== openBrace && bytes[start] !== openBracket;
      if (this.#isStream) return false;
      this.#add(bytes.subarray(start));
    }
    return true;
  }

  /** The body, at its end; undefined if there is none. */
  end(): string | undefined {
    const text = this.#text;
    this.#text = undefined;
    return text === undefined ? undefined : text + this.#decoder.decode();
  }

  #add(bytes: Uint8Array): void {
    this.#receivedBytes += bytes.length;
    const { answerLimitBytes, answerValues } = this.#limits;
    if (this.#receivedBytes > answerLimitBytes) {
      throw this.#refuse(`the answer is larger than ${answerLimitBytes} bytes`);
    }
    try {
      this.#scan?.push(bytes);
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      throw this.#refuse(`the answer has more than ${answerValues} values, or nests too deeply`);
    }
    this.#text = (this.#text ?? "") + this.#decoder.decode(bytes, { stream: true });
  }

  #refuse(message: string): UpstreamFailure {
    this.#text = "";
    return new UpstreamFailure({ kind: "broken-answer", message });
  }
}

const openBrace = 0x7b;
const openBracket = 0x5b;
/**
 * White space, which some servers send to keep a connection busy, and the three bytes of a byte
 * order mark.
 */
const beforeJson: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0d, 0x20, 0xef, 0xbb, 0xbf]);
