import type { z } from "zod";
import { GatewayError } from "../../domain/errors/gateway-error.ts";

/** The first schema error, as the caller sees it. Values are never echoed. */
export function fieldError(error: z.ZodError, input: unknown): GatewayError {
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
