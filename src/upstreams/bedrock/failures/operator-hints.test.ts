import { expect, test } from "bun:test";
import { failureOfException } from "./exceptions.ts";

const hintOf = (name: string, message: string): string | undefined =>
  failureOfException({ name, body: { message }, status: 400 }).hint;

test.each([
  [
    "ValidationException",
    "Invocation of model ID x with on-demand throughput isn’t supported.",
    "inference profile",
  ],
  ["ValidationException", "The provided model identifier is invalid.", "identifier, its region"],
  ["ResourceNotFoundException", "This model has reached the end of its life.", "newer one"],
  ["ValidationException", "The guardrail identifier or version does not exist.", "guardrail"],
  ["AccessDeniedException", "You don't have access to the model.", "request access"],
  ["AccessDeniedException", "Model access is denied due to INVALID_PAYMENT_INSTRUMENT:", "payment"],
  [
    "AccessDeniedException",
    "Model access is denied due to the role is not authorized to perform the required AWS " +
      "Marketplace actions (aws-marketplace:ViewSubscriptions, aws-marketplace:Subscribe)",
    "subscription",
  ],
  ["ResourceNotFoundException", "Model use case details have not been submitted.", "form"],
  ["ValidationException", "Operation not allowed", "provider's support"],
  ["ValidationException", "Your account is not authorized to invoke this API operation.", "region"],
  [
    "ValidationException",
    "Access to this model is not available for channel program accounts.",
    "another model or account",
  ],
  [
    "ValidationException",
    "data retention mode 'default' is not available for this model",
    "data retention",
  ],
  ["ExpiredTokenException", "The security token is expired.", "expired"],
  ["InvalidSignatureException", "The signature does not match.", "clock"],
])("after %s '%s' the operator gets a hint what to change", (name, message, words) => {
  expect(hintOf(name, message)).toContain(words);
});

test("failures beyond the operator's control have no hint", () => {
  expect(hintOf("ThrottlingException", "Too many requests")).toBeUndefined();
  expect(hintOf("ValidationException", "prompt is too long: 2 tokens > 1 maximum")).toBeUndefined();
});
