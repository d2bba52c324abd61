import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eventFrame, exceptionFrame } from "../../simulator/bedrock/event-frames.ts";
import {
  badCredential,
  bodyOf,
  failing,
  late,
  limiting,
  malformed,
  mistralTooLong,
  novaTooLong,
  onDemand,
  overflow,
  overloaded,
  promptTooLong,
  refused,
  tooMany,
  unknownModel,
  type Exception,
} from "./bedrock-exceptions.ts";
import { ScriptedUpstream, type Piece, type ScriptedAnswer } from "./scripted-upstream.ts";

/**
 * Every exception of the provider before an answer, and all that its caller sees. Those within
 * streams are with the families, at every position of what each can say.
 */

let upstream: ScriptedUpstream;
beforeAll(async () => {
  upstream = await ScriptedUpstream.start("bedrock");
});
afterAll(async () => {
  await upstream[Symbol.asyncDispose]();
});

/** Name, status and text as the provider sends them before an answer. */
const before: readonly Exception[] = [
  { name: "ValidationException", status: 400, message: malformed, seen: refused(malformed) },
  {
    name: "ValidationException",
    status: 400,
    message: promptTooLong,
    seen: overflow(promptTooLong),
  },
  {
    name: "ValidationException",
    status: 400,
    message: "The provided model identifier is invalid.",
    seen: unknownModel,
  },
  { name: "ValidationException", status: 400, message: onDemand, seen: unknownModel },
  { name: "ValidationException", status: 400, message: novaTooLong, seen: overflow(novaTooLong) },
  {
    name: "ValidationException",
    status: 400,
    message: mistralTooLong,
    seen: overflow(mistralTooLong),
  },
  {
    name: "ValidationException",
    status: 400,
    message: "Input is too long.",
    seen: overflow("Input is too long."),
  },
  {
    name: "ValidationException",
    status: 400,
    message: "Operation not allowed",
    seen: badCredential,
  },
  {
    name: "ValidationException",
    status: 400,
    message: "Your account is not authorized to invoke this API operation.",
    seen: badCredential,
  },
  {
    name: "ResourceNotFoundException",
    status: 404,
    message: "This model version has reached the end of its life.",
    seen: unknownModel,
  },
  {
    name: "AccessDeniedException",
    status: 403,
    message: "You don't have access to the model with the specified model ID.",
    seen: badCredential,
  },
  {
    name: "UnrecognizedClientException",
    status: 403,
    message: "The security token included in the request is invalid.",
    seen: badCredential,
  },
  {
    name: "InvalidSignatureException",
    status: 403,
    message: "The request signature we calculated does not match the signature you provided.",
    seen: badCredential,
  },
  {
    name: "ExpiredTokenException",
    status: 403,
    message: "The security token included in the request is expired",
    seen: badCredential,
  },
  { name: "ThrottlingException", status: 429, message: tooMany, seen: limiting },
  {
    name: "ModelNotReadyException",
    status: 429,
    message: "Model is not ready for inference.",
    seen: overloaded,
  },
  {
    name: "ServiceQuotaExceededException",
    status: 400,
    message: "Your request exceeds the service quota for your account.",
    seen: limiting,
  },
  {
    name: "ModelTimeoutException",
    status: 408,
    message: "Model has timed out in processing the request.",
    seen: late,
  },
  {
    name: "ModelErrorException",
    status: 424,
    message: "The model failed.",
    fields: { originalStatusCode: 500, resourceName: "arn:aws:bedrock:us-east-1::x" },
    seen: failing,
  },
  {
    name: "InternalServerException",
    status: 500,
    message: "The system encountered an unexpected error during processing.",
    seen: failing,
  },
  {
    name: "ServiceUnavailableException",
    status: 503,
    message: "Bedrock is unable to process your request.",
    seen: overloaded,
  },
];

const answer = (exception: Exception): ScriptedAnswer => ({
  status: exception.status,
  headers: {
    "x-amzn-errortype": `${exception.name}:http://internal.amazon.com/coral/com.amazon.bedrock/`,
  },
  pieces: [JSON.stringify({ message: exception.message, ...exception.fields })],
});

const requestId = "5f3b1c52-0000-4000-8000-1234567890ab";

const stream = (...pieces: readonly Piece[]): ScriptedAnswer => ({
  headers: {
    "content-type": "application/vnd.amazon.eventstream",
    "x-amzn-requestid": requestId,
  },
  pieces,
});

const start = eventFrame("messageStart", JSON.stringify({ role: "assistant", p: "ab" }));

describe.each([false, true])("an exception before the answer, streamed: %p,", (isStreamed) => {
  test.each(before)("$name $status: $message", async (exception) => {
    const response = await upstream.chat(answer(exception), { stream: isStreamed });
    expect(response.status).toBe(exception.seen.status);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await response.text()).toBe(bodyOf(exception.seen));
  });
});

test("the log names the exception within a stream and the provider's id of the request", async () => {
  const frame = exceptionFrame("throttlingException", JSON.stringify({ message: tooMany }));
  const response = await upstream.chat(stream(start, frame), { stream: true });
  await response.text();
  const lines = upstream.gateway.log.filter((each) => each.includes("attempt failed"));
  expect(JSON.parse(lines.at(-1) ?? "{}")).toMatchObject({
    kind: "throttled",
    code: "throttlingException",
    requestId,
  });
});

test("the log has the provider's id of a request that was refused before any answer, too", async () => {
  const [exception] = before;
  if (exception === undefined) throw new Error("no exception");
  const refusal = answer(exception);
  const headers = { ...refusal.headers, "x-amzn-requestid": requestId };
  await (await upstream.chat({ ...refusal, headers })).text();
  const lines = upstream.gateway.log.filter((each) => each.includes("attempt failed"));
  expect(JSON.parse(lines.at(-1) ?? "{}")).toMatchObject({ code: exception.name, requestId });
});
