import { isUtf8 } from "node:buffer";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { nextTurn, oneTurnBytes } from "../../domain/waiting/next-turn.ts";
import { releaseBytes } from "../../domain/chat/release-bytes.ts";
import { notJson } from "./messages.ts";

export interface JsonBody {
  readonly value: unknown;
  readonly text: string;
}

/**
 * Parses a request body whose depth and number of values are bounded already. Throws 400 for
 * invalid JSON or UTF-8. Each step of a large body has its own turn of the event loop. The bytes
 * are released, which halves the memory of a large body.
 */
export async function parseJson(bytes: Uint8Array): Promise<JsonBody> {
  const isLarge = bytes.byteLength > oneTurnBytes;
  try {
    // Checked first: a fatal decoder takes ten times as long to find a mistake.
    if (!isUtf8(bytes)) throw new TypeError("not UTF-8");
    const text = new TextDecoder().decode(bytes);
    releaseBytes(bytes);
    if (isLarge) await nextTurn();
    const value: unknown = JSON.parse(text);
    if (isLarge) await nextTurn();
    return { value, text };
  } catch (error) {
    throw new GatewayError("invalid_json", { message: notJson(), cause: error });
  }
}
