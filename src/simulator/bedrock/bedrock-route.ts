import { texts } from "../faults/bedrock-modes.ts";
import { BedrockError } from "./bedrock-error.ts";

/** The operations, with their kinds in the truth log. */
const operations = {
  converse: "chat",
  "converse-stream": "chat",
  invoke: "embeddings",
  "invoke-with-response-stream": "embeddings",
  "count-tokens": "count-tokens",
} as const;
export type Operation = keyof typeof operations;

export interface BedrockRoute {
  readonly operation: Operation;
  readonly kind: (typeof operations)[Operation];
  /** Decoded. */
  readonly model: string;
}

/** All paths of this wire begin like this, and none of OpenAI's do. */
export function isBedrockPath(path: string): boolean {
  return path.startsWith("/model/");
}

/**
 * Reads the path as received: the model's id is one segment, in which slashes are encoded. Throws
 * `BedrockError` for every other path.
 */
export function bedrockRoute(method: string, path: string): BedrockRoute {
  const [, , id = "", operation = "", ...rest] = path.split("/");
  const model = decoded(id);
  if (method !== "POST" || !isOperation(operation) || rest.length > 0 || !model) {
    throw new BedrockError("UnknownOperationException", texts.unknownOperation);
  }
  return { operation, kind: operations[operation], model };
}

function isOperation(name: string): name is Operation {
  return Object.hasOwn(operations, name);
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
