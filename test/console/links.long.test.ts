import { afterAll, beforeAll, expect } from "bun:test";
import { type ConsoleWorld, operator, startConsole, testInBrowser as test } from "./support.ts";

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsole();
}, 180_000);
afterAll(() => world[Symbol.asyncDispose]());

test("the link of the demo signs in once, and a second use says what to do", async () => {
  const link = /http\S+#sign-in=\w+/.exec(world.gateway.text())?.[0] ?? "";
  expect(link).not.toBe("");
  await using visit = await world.visit();
  const { page } = visit;
  await page.goto(visit.url);
  await page.getByRole("heading", { name: "Sign in to Sluice" }).waitFor();
  // In a tab that has the console open already.
  await page.goto(link);
  await page.getByText("operator@demo.localhost").first().waitFor();
  expect(page.url()).not.toContain("#");
  await page.reload();
  await page.getByText("operator@demo.localhost").first().waitFor();
  await visit.expectClean();
  for (const theme of ["light", "dark"] as const) {
    await using other = await world.visit({ theme, width: 390 });
    await other.page.goto(link);
    await other.page.getByRole("heading", { name: "This link does not sign in" }).waitFor();
    await other.page.getByText("Restart the demo for another").waitFor();
    expect(other.page.url()).not.toContain("#");
    await other.expectAccessible();
    await other.page.getByRole("button", { name: "Go to the console" }).click();
    await other.page.getByRole("heading", { name: "Sign in to Sluice" }).waitFor();
    await other.expectClean();
  }
});

test("a user who was invited by a link chooses a password, once, and signs in with it", async () => {
  await world.admin("POST", "/accounts", { name: "Example Ltd" });
  await using visit = await world.signedIn(operator);
  const { page } = visit;
  await page.goto(`${visit.url}/users`);
  await page.getByRole("button", { name: "Create user" }).click();
  const dialog = page.getByRole("dialog", { name: "Create a user" });
  await dialog.getByLabel("Email address").fill("Ada@example.com");
  await dialog.getByLabel("Account", { exact: true }).selectOption("Example Ltd");
  await visit.expectAccessible();
  await dialog.getByRole("button", { name: "Create user" }).click();
  const link = (await page.getByRole("textbox", { name: "link" }).textContent()) ?? "";
  await visit.expectAccessible();
  await page.getByRole("button", { name: "I have stored it" }).click();
  await page.getByRole("row", { name: /ada@example.com.*Example Ltd/ }).waitFor();
  expect(await page.content()).not.toContain(link);
  await visit.expectClean();

  await using invited = await world.visit();
  await invited.page.goto(link);
  const password = invited.page.getByLabel("New password");
  await password.fill("short");
  expect(invited.page.url()).not.toContain("#");
  const submit = invited.page.getByRole("button", { name: "Set password and sign in" });
  await submit.click();
  // A refused password leaves the link valid.
  await invited.page.getByText("use 12 to 256 characters").first().waitFor();
  await invited.expectAccessible();
  const ada = { email: "ada@example.com", password: "sand in the hourglass" };
  await password.fill(ada.password);
  await submit.click();
  await invited.page.getByText("Account holder", { exact: true }).waitFor();
  await invited.page.getByRole("button", { name: "Sign out" }).click();
  await invited.signIn(ada);
  await invited.expectClean();

  await using late = await world.visit();
  await late.page.goto(link);
  await late.page.getByLabel("New password").fill("another good password");
  await late.page.getByRole("button", { name: "Set password and sign in" }).click();
  await late.page.getByText("If you have set a password with it").waitFor();
  await late.expectAccessible();
  await late.expectClean();
});

test("an operator resets a password by a link, and an earlier link ends", async () => {
  const bob = { email: "bob@example.com", password: operator.password };
  await world.admin("POST", "/users", { ...bob, role: "auditor" });
  await using visit = await world.signedIn(operator);
  const { page } = visit;
  await page.goto(`${visit.url}/users`);
  const links: string[] = [];
  for (const hours of ["24 hours", "An hour"]) {
    await page.getByRole("button", { name: "Make a link for bob@example.com" }).click();
    await page.getByLabel("It works for").selectOption(hours);
    await page.getByRole("button", { name: "Make link" }).click();
    links.push((await page.getByRole("textbox", { name: "link" }).textContent()) ?? "");
    await page.getByRole("button", { name: "I have stored it" }).click();
  }
  const outcomes = ["This link does not sign in", "bob@example.com"];
  for (const [index, link] of links.entries()) {
    await using other = await world.visit();
    await other.page.goto(link);
    await other.page.getByLabel("New password").fill("a password after the reset");
    await other.page.getByRole("button", { name: "Set password and sign in" }).click();
    await other.page
      .getByText(outcomes[index] ?? "")
      .first()
      .waitFor();
  }
  await visit.expectClean();
});
