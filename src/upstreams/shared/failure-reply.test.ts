import { describe, expect, test } from "bun:test";
import { cleanMessage } from "./failure-reply.ts";

describe("removed from an upstream's message:", () => {
  const secrets = [
    "sk-proj-Ab3_x9Ab3x9Ab3",
    "sk-simulator-0000",
    "sk-****************abcd",
    "org-AbCdEf123456",
    "proj_abcdef123456",
    "AKIAIOSFODNN7EXAMPLE",
    "AROAIOSFODNN7EXAMPLE",
    "IQoJb3JpZ2luX2VjEHoaCXVzLWVhc3QtMSJHMEUCIQ+/=",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-def_1",
    "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.x",
    "https://platform.example/account?id=7",
    "123456789012",
    "10.0.12.7:8080",
  ];
  for (const secret of secrets) {
    test(secret, () => {
      const clean = cleanMessage(`Refused for ${secret}, sorry.`);
      expect(clean).not.toContain(secret);
      expect(clean).toStartWith("Refused for [removed]");
    });
  }
  test("a bearer token", () => {
    expect(cleanMessage("header 'Authorization: Bearer abc.def' is wrong")).not.toContain("abc");
  });
});

test("text without details of the operator is unchanged", () => {
  const messages = [
    "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 200.",
    "This model's maximum context length is 8192 tokens. However, you requested 8227 tokens.",
    "The keyword-argument key is not a risk-free organisation of requests_per_minute.",
    "Unknown field: 'key_points' in messages[0].content[1]",
    "No blob da39a3ee5e6b4b0d3255bfef95601890afd80709 at models/Meta-Llama-3.1-405B-Instruct-FP8",
    "",
  ];
  for (const message of messages) expect(cleanMessage(message)).toBe(message);
});

test("a message is never longer than a thousand characters and three dots", () => {
  expect(cleanMessage("a ".repeat(50_000))).toHaveLength(1_003);
});

test("a secret across the cut is removed whole", () => {
  for (let length = 980; length <= 1_000; length += 1) {
    const clean = cleanMessage(`${"a".repeat(length - 1)} sk-proj-${"Z".repeat(40)} and more`);
    expect(clean).not.toContain("ZZZ");
  }
});
