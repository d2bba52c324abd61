import { expect, test } from "bun:test";
import { nextTurn } from "../../../domain/waiting/wait.ts";
import { driverUrl, createClient } from "./pool.ts";

const url = "postgres://user:p%23w@db.example:5433/sluice?application_name=a";

test("modes that are verified alike are given to the driver as one", () => {
  for (const mode of ["prefer", "require", "verify-ca", "verify-full"]) {
    expect(driverUrl(`${url}&sslmode=${mode}&keepalives=1`, "storage.url")).toBe(
      `${url}&sslmode=verify-full&keepalives=1`,
    );
  }
  for (const query of ["", "&sslmode=disable", "&sslmode=require&uselibpqcompat=true"]) {
    expect(driverUrl(`${url}${query}`, "storage.url")).toBe(`${url}${query}`);
  }
});

test("the driver warns of none of them", async () => {
  const warnings: unknown[] = [];
  const note = (warning: unknown): void => void warnings.push(warning);
  process.on("warning", note);
  await createClient({ url: `${url}&sslmode=require` });
  await nextTurn();
  process.off("warning", note);
  expect(warnings).toEqual([]);
});
