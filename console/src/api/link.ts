/** A link that signs in once. Its token is in the fragment, which browsers send to nobody. */
export interface OneTimeLink {
  readonly purpose: "sign-in" | "new-password";
  readonly token: string;
}

const pattern = /^#(sign-in|new-password)=(.+)$/;

/** The link by which the page was opened. It leaves the address and the history at once. */
export function takeLink(): OneTimeLink | undefined {
  // One that is opened in a tab of the console does not load the page by itself.
  window.addEventListener("hashchange", () => {
    if (pattern.test(window.location.hash)) window.location.reload();
  });
  const [, purpose, token] = pattern.exec(window.location.hash) ?? [];
  if (token === undefined) return undefined;
  window.history.replaceState(null, "", window.location.pathname);
  return { purpose: purpose === "sign-in" ? purpose : "new-password", token };
}
