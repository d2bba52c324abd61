import { expect, test } from "bun:test";
import { startGateway } from "../support/gateway.ts";

test("the root of the admin listener leads to the reference", async () => {
  await using gateway = await startGateway();
  const root = await fetch(`${gateway.adminUrl}/`, { redirect: "manual" });
  expect([root.status, root.headers.get("location")]).toEqual([302, "/admin/v1/docs"]);
  const followed = await fetch(`${gateway.adminUrl}/`);
  expect(followed.headers.get("content-type")).toContain("text/html");
});
