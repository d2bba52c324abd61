import { JsonScan, mostAnswerDepth } from "../../domain/chat/json-scan.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { DecoderLimits } from "../adapter.ts";
import { answerTooLarge, type UpstreamFailure } from "../../domain/errors/upstream-failure.ts";

type WholeBodyLimits = Pick<DecoderLimits, "answerLimitBytes" | "answerValues">;

/**
 * Collects the body of an answer that is JSON instead of a stream: servers answer a request for a
 * stream so, and send errors so with status 200. No stream begins like JSON.
 */
export class WholeBody {
  readonly #limits: WholeBodyLimits;
  readonly #decoder = new TextDecoder();
  readonly #scan: JsonScan;
  #isStream = false;
  #receivedBytes = 0;
  #text: string | undefined;

  constructor(limits: WholeBodyLimits) {
    this.#limits = limits;
    this.#scan = new JsonScan({ jsonDepth: mostAnswerDepth, jsonValues: limits.answerValues });
  }

  /**
   * Whether the next bytes of an answer belong to such a body. Throws `UpstreamFailure` when it
   * exceeds a limit.
   */
  take(bytes: Uint8Array): boolean {
    if (this.#isStream) return false;
    if (this.#text !== undefined) this.#add(bytes);
    else {
      const start = startOf(bytes);
      if (start === bytes.length) return false;
      this.#isStream = !beginsJson(bytes[start]);
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
      throw this.#refuse(`more than ${answerLimitBytes} bytes`);
    }
    try {
      this.#scan.push(bytes);
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      throw this.#refuse(`more than ${answerValues} values, or nests too deeply`);
    }
    this.#text = (this.#text ?? "") + this.#decoder.decode(bytes, { stream: true });
  }

  #refuse(what: string): UpstreamFailure {
    this.#text = "";
    return answerTooLarge(what);
  }
}

/** Whether a body is JSON and not a stream. */
export function isJson(body: Uint8Array): boolean {
  return beginsJson(body[startOf(body)]);
}

/** Where the text begins; the length if there is none. */
function startOf(bytes: Uint8Array): number {
  let start = 0;
  for (const byte of bytes) {
    if (!beforeJson.has(byte)) break;
    start += 1;
  }
  return start;
}

function beginsJson(byte: number | undefined): boolean {
  return byte === 0x7b || byte === 0x5b;
}

/**
 * White space, which some servers send to keep a connection busy, and the three bytes of a byte
 * order mark.
 */
const beforeJson: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0d, 0x20, 0xef, 0xbb, 0xbf]);
