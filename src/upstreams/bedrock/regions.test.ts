import { describe, expect, test } from "bun:test";
import { fitToRegion, regionOfArn } from "./regions.ts";

const sonnet = "anthropic.claude-sonnet-4-20250514-v1:0";
const haiku = "anthropic.claude-haiku-4-5-20251001-v1:0";

describe("the profile of a region", () => {
  test.each([
    [`us.${sonnet}`, "us-west-2", `us.${sonnet}`],
    [`us.${sonnet}`, "eu-central-1", `eu.${sonnet}`],
    [`eu.${sonnet}`, "us-east-1", `us.${sonnet}`],
    [`us.${sonnet}`, "us-gov-west-1", `us-gov.${sonnet}`],
    [`us-gov.${sonnet}`, "us-east-2", `us.${sonnet}`],
    ["us.amazon.nova-lite-v1:0", "ca-central-1", "ca.amazon.nova-lite-v1:0"],
    [`us.${sonnet}`, "ap-south-1", `apac.${sonnet}`],
    [`us.${haiku}`, "ap-south-1", `apac.${haiku}`],
    ["us.amazon.nova-lite-v1:0", "me-central-1", "apac.amazon.nova-lite-v1:0"],
  ])("of %s in %s is %s", (identifier, region, fitted) => {
    expect(fitToRegion(identifier, region)).toBe(fitted);
  });

  test.each([
    [`us.${sonnet}`, "ap-northeast-1", `apac.${sonnet}`],
    [`us.${haiku}`, "ap-northeast-1", `jp.${haiku}`],
    [`us.${haiku}`, "ap-northeast-3", `jp.${haiku}`],
    [`us.${haiku}`, "ap-northeast-2", `apac.${haiku}`],
    [`us.${sonnet}`, "ap-southeast-2", `apac.${sonnet}`],
    [`us.${haiku}`, "ap-southeast-4", `au.${haiku}`],
    [`us.${haiku}`, "ap-southeast-1", `apac.${haiku}`],
    ["us.anthropic.claude-sonnet-4-6", "ap-southeast-2", "au.anthropic.claude-sonnet-4-6"],
    ["us.amazon.nova-2-lite-v1:0", "ap-northeast-1", "jp.amazon.nova-2-lite-v1:0"],
    ["us.amazon.nova-lite-v1:0", "ap-northeast-1", "apac.amazon.nova-lite-v1:0"],
  ])("of %s in %s, where two geographies overlap, is %s", (identifier, region, fitted) => {
    expect(fitToRegion(identifier, region)).toBe(fitted);
  });

  test.each([
    [`apac.${haiku}`, "ap-northeast-1"],
    [`jp.${sonnet}`, "ap-northeast-3"],
    [`au.${haiku}`, "ap-southeast-2"],
    [`in.${haiku}`, "ap-south-1"],
    [`global.${haiku}`, "us-east-1"],
    [`global.${haiku}`, "sa-east-1"],
    [sonnet, "eu-west-1"],
    ["amazon.titan-embed-text-v2:0", "sa-east-1"],
    ["simulated-chat", "ap-south-1"],
  ])("of %s in %s is as it is written", (identifier, region) => {
    expect(fitToRegion(identifier, region)).toBe(identifier);
  });

  test.each(["sa-east-1", "af-south-1", "cn-north-1", "us-iso-east-1", "eu-isoe-west-1"])(
    "is not known in %s",
    (region) => {
      expect(fitToRegion(`us.${sonnet}`, region)).toBeUndefined();
    },
  );
});

test.each([
  ["arn:aws:bedrock:us-east-1:111122223333:provisioned-model/abc", "us-east-1"],
  ["arn:aws:bedrock:us-west-2::foundation-model/amazon.nova-pro-v1:0", "us-west-2"],
  ["arn:aws-us-gov:bedrock:us-gov-west-1:111122223333:inference-profile/us-gov.x", "us-gov-west-1"],
  ["arn:aws:bedrock:::foundation-model/x", undefined],
  [sonnet, undefined],
])("the region of %s is %s, and it is good there only", (identifier, region) => {
  expect(regionOfArn(identifier)).toBe(region);
  expect(fitToRegion(identifier, "eu-north-1")).toBe(region === undefined ? identifier : undefined);
  if (region !== undefined) expect(fitToRegion(identifier, region)).toBe(identifier);
});
