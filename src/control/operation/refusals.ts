import type { z } from "zod";
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

/** Throws 400. */
export function parseFields<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw fieldError(result.error, value);
}

/** The first schema error, as the caller sees it. Values are never echoed. */
function fieldError(error: z.ZodError, input: unknown): GatewayError {
  const [issue] = error.issues;
  const unreadable = new GatewayError("invalid_value", { message: "Invalid request." });
  if (issue === undefined) return unreadable;
  if (issue.code === "unrecognized_keys") return unknownField(issue);
  const param = writePath(issue.path);
  if (valueAt(input, issue.path) === undefined) {
    const message = `Missing required parameter: '${param}'.`;
    return new GatewayError("missing_required_parameter", { message, param });
  }
  if (issue.code !== "invalid_type") {
    return new GatewayError("invalid_value", { message: describe(param, issue.message), param });
  }
  return new GatewayError("invalid_type", {
    message:
      param === ""
        ? "The body must be a JSON object."
        : `Invalid type for '${param}': expected ${issue.expected}.`,
    param: param === "" ? null : param,
  });
}

/** For rules that a schema cannot express, such as that an environment exists. */
export function invalidField(param: string, advice: string): GatewayError {
  return new GatewayError("invalid_value", { message: describe(param, advice), param });
}

function unknownField(issue: z.core.$ZodIssueUnrecognizedKeys): GatewayError {
  const [name = ""] = issue.keys;
  // The name is echoed to its sender, but not at any length.
  const param = writePath([...issue.path, name.slice(0, 100)]);
  return new GatewayError("invalid_value", {
    message: `Unknown parameter: '${param}'. Leave it out.`,
    param,
  });
}

function describe(param: string, advice: string): string {
  const sentence = advice.endsWith(".") ? advice : `${advice}.`;
  return `Invalid value for '${param}': ${sentence}`;
}

function writePath(path: readonly PropertyKey[]): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else text += text === "" ? String(part) : `.${String(part)}`;
  }
  return text;
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const part of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = Object.getOwnPropertyDescriptor(value, part)?.value;
  }
  return value;
}

/** The request conflicts with the current state. The message explains what to do instead. */
export function wrongState(message: string): GatewayError {
  return new GatewayError("wrong_state", { message });
}

/** The caller's role, account or scopes do not allow it. */
export function notPermitted(message: string, param: string | null = null): GatewayError {
  return new GatewayError("not_permitted", { message, param });
}

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
