import { expect, test } from "bun:test";
import { BedrockRuntimeClient } from "@aws-sdk/client-bedrock-runtime";
import { encodePathSegment, endpointOf } from "./endpoint.ts";

const regions = [
  "us-east-1",
  "eu-central-1",
  "ap-southeast-7",
  "mx-central-1",
  "us-gov-west-1",
  "cn-north-1",
  "cn-northwest-1",
  "eusc-de-east-1",
  "us-iso-east-1",
  "us-isob-east-1",
  "eu-isoe-west-1",
  "us-isof-south-1",
];

test.each(regions.flatMap((region) => [false, true].map((useFips) => [region, useFips] as const)))(
  "the address for %s (FIPS: %p) is the official client's",
  (region, useFips) => {
    const { endpointProvider } = new BedrockRuntimeClient({ region }).config;
    const { url } = endpointProvider({ Region: region, UseFIPS: useFips, UseDualStack: false });
    const address = endpointOf({ region, useFips, endpoint: undefined, service: "runtime" });
    expect(`${address}/`).toBe(url.href);
  },
);

test("the operator's address replaces the region's, without a slash at its end", () => {
  const endpoint = "https://vpce-1.example:8443/bedrock/";
  const upstream = { region: "us-east-1", useFips: false } as const;
  expect(endpointOf({ ...upstream, endpoint, service: "runtime" })).toBe(
    "https://vpce-1.example:8443/bedrock",
  );
  expect(endpointOf({ ...upstream, endpoint: undefined, service: "mantle" })).toBe(
    "https://bedrock-mantle.us-east-1.api.aws",
  );
});

test.each([
  ["anthropic.claude-3-haiku-20240307-v1:0", "anthropic.claude-3-haiku-20240307-v1%3A0"],
  [
    "arn:aws:bedrock:us-east-1:123456789012:provisioned-model/abc",
    "arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Aprovisioned-model%2Fabc",
  ],
  ["a!b'c(d)e*f", "a%21b%27c%28d%29e%2Af"],
  ["ü/..", "%C3%BC%2F.."],
])("the identifier %s is one segment of a path", (identifier, segment) => {
  expect(encodePathSegment(identifier)).toBe(segment);
});
