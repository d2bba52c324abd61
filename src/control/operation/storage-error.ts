import {
  GatewayError,
  type GatewayErrorDetails,
  type GatewayErrorName,
} from "../../domain/errors/gateway-error.ts";
import { isObject } from "../../domain/json-object.ts";
import {
  AlreadyExists,
  InvalidCursor,
  RevisionConflict,
  StillInUse,
  StorageUnavailable,
} from "../../store/errors.ts";

type Answer = GatewayErrorDetails & {
  readonly thrown: abstract new (...parts: never[]) => Error;
  readonly name: GatewayErrorName;
};

const answers: readonly Answer[] = [
  {
    thrown: StorageUnavailable,
    name: "storage_unavailable",
    message: "The database is unavailable. Please retry your request.",
    headers: { "retry-after": "1" },
  },
  {
    thrown: AlreadyExists,
    name: "already_exists",
    message: "The name is taken. Choose another.",
  },
  {
    thrown: RevisionConflict,
    name: "revision_conflict",
    message: "It has changed since the revision you sent. Read it again, then repeat.",
    param: "revision",
  },
  {
    thrown: StillInUse,
    name: "still_in_use",
    message: "It is still in use. Remove what belongs to it first.",
  },
  {
    thrown: InvalidCursor,
    name: "invalid_value",
    message: "Invalid value for 'cursor': use the `next_cursor` of the previous page, unchanged.",
    param: "cursor",
  },
];

/**
 * Converts an error of the storage to an error of the control plane; others pass unchanged. `body`
 * is that of the request.
 */
export function fromStorageError(error: unknown, body?: unknown): unknown {
  const answer = answers.find(({ thrown }) => error instanceof thrown);
  if (answer === undefined) return error;
  const name = error instanceof AlreadyExists && isObject(body) ? body["name"] : undefined;
  const taken = typeof name === "string" && {
    message: `The name '${name}' is taken. Choose another.`,
    param: "name",
  };
  return new GatewayError(answer.name, { ...answer, ...taken, cause: error });
}
