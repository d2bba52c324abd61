/** What is wrong with an error answer that should have OpenAI's shape; undefined if nothing is. */
export function errorShapeProblem(headers: Headers, text: string): string | undefined {
  if (!/^req_[0-9a-f]{32}$/.test(headers.get("x-request-id") ?? "")) return "no x-request-id";
  if (headers.get("content-type") !== "application/json") return "not application/json";
  return errorBodyProblem(text);
}

/** The same for the JSON alone, as in the frame that ends a broken stream. */
export function errorBodyProblem(text: string): string | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return `not JSON: ${text.slice(0, 200)}`;
  }
  if (!isRecord(parsed) || Object.keys(parsed).join() !== "error") return "not one error";
  const { error } = parsed;
  if (!isRecord(error)) return "the error is no object";
  const keys = Object.keys(error).sort().join();
  if (keys !== "code,message,param,type") return `the error's keys are ${keys}`;
  const { message, type, param, code } = error;
  if (typeof message !== "string" || message === "") return "no message";
  if (typeof type !== "string" || type === "") return "no type";
  if (param !== null && typeof param !== "string") return "param is neither null nor a text";
  if (code !== null && typeof code !== "string") return "code is neither null nor a text";
  return undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
