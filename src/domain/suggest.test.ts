import { describe, expect, test } from "bun:test";
import { suggest } from "./suggest.ts";

const keys = ["body_limit", "body_timeout", "kind", "keep_alive", "keep_alive_interval"];

describe("suggest", () => {
  test.each([
    ["kindd", "kind"],
    ["knid", "kind"],
    ["KIND", "kind"],
    ["body-limit", "body_limit"],
    ["bodyTimeout", "body_timeout"],
    ["bodylimits", "body_limit"],
    ["keepalive", "keep_alive"],
    ["keep_alive_intervall", "keep_alive_interval"],
  ])("finds what %s means", (written, meant) => {
    expect(suggest(written, keys)).toBe(meant);
  });

  test.each(["zebra", "k", "", "x".repeat(1000), "!!!!"])("leaves %s alone", (written) => {
    expect(suggest(written, keys)).toBeUndefined();
  });
});
