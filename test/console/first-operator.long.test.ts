import { expect } from "bun:test";
import { operator, startConsole, testInBrowser as test } from "./support.ts";

test("an account holder can sign in before there is an operator", async () => {
  await using world = await startConsole({ admin: () => ({}), isNew: true });
  const { id } = await world.admin("POST", "/accounts", { name: "Alpha Ltd" });
  const ada = { email: "ada@example.com", password: operator.password };
  await world.admin("POST", "/users", { ...ada, account_id: id, role: "account_holder" });
  await using visit = await world.visit();
  const { page } = visit;
  await page.goto(visit.url);
  await page.getByText("There is no operator yet.").waitFor();
  await page.getByRole("button", { name: "Sign in instead" }).click();
  await page.getByRole("heading", { name: "Sign in to Sluice" }).waitFor();
  await page.getByLabel("Email address").fill(ada.email);
  await page.getByLabel("Password", { exact: true }).fill(ada.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Home" }).waitFor();
  await visit.expectClean();
});

test("the first operator is created with the printed token, which a second use does not do", async () => {
  await using world = await startConsole({ admin: () => ({}), isNew: true });
  const token = /one-time token (\S+)/.exec(world.gateway.text())?.[1] ?? "";
  expect(token).not.toBe("");
  await using visit = await world.visit();
  const { page } = visit;
  await page.goto(visit.url);
  await page.getByRole("heading", { name: "Create the first operator" }).waitFor();
  await visit.expectAccessible();
  await page.getByLabel("One-time token").fill("wrong");
  await page.getByLabel("Email address").fill(operator.email);
  await page.getByLabel("Password", { exact: true }).fill(operator.password);
  await page.getByRole("button", { name: "Create operator" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("One-time token").fill(token);
  await page.getByRole("button", { name: "Create operator" }).click();
  await page.getByRole("heading", { name: "Home" }).waitFor();
  await visit.expectClean();
  await using other = await world.visit();
  await other.page.goto(other.url);
  await other.page.getByRole("heading", { name: "Sign in to Sluice" }).waitFor();
});
