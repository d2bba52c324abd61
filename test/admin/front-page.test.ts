import { expect, test } from "bun:test";
import { startGateway } from "../support/gateway.ts";

test("the root of the admin listener leads browsers to the reference, and tells others the paths", async () => {
  await using gateway = await startGateway();
  const get = (accept: string) =>
    fetch(`${gateway.adminUrl}/`, { headers: { accept }, redirect: "manual" });
  const browser = await get("text/html,application/xhtml+xml,*/*;q=0.8");
  expect([browser.status, browser.headers.get("location")]).toEqual([302, "/admin/v1/docs"]);
  const followed = await fetch(`${gateway.adminUrl}/`, { headers: { accept: "text/html" } });
  expect(followed.headers.get("content-type")).toContain("text/html");
  const curl = await get("*/*");
  expect(curl.status).toBe(200);
  expect(await curl.text()).toContain("/admin/v1/docs");
});
