import { GatewayError } from "../domain/gateway-error.ts";
import { exceedsDepth } from "./schemas/json-depth.ts";
import { notJson } from "./schemas/messages.ts";

export interface JsonBody {
  readonly value: unknown;
  readonly text: string;
}

/** Parses a request body. Throws 400 for what is no JSON, is not UTF-8, or nests too deep. */
export function parseJson(bytes: Uint8Array, depthLimit: number): JsonBody {
  if (exceedsDepth(bytes, depthLimit)) {
    throw new GatewayError("invalid_json", {
      message: `The JSON body of your request nests deeper than ${depthLimit} levels.`,
    });
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return { value: JSON.parse(text), text };
  } catch (error) {
    throw new GatewayError("invalid_json", { message: notJson(), cause: error });
  }
}
