// Who reviews. Kept in this browser, sent with each decision.

import { byId } from "./dom.js";

const KEY = "polypcount reviewer";

/** The name that the person gave; empty if none. */
export const author = () => byId("author").value.trim();

/** Fills the field with the name from last time, and keeps what is typed. */
export function rememberAuthor() {
  const field = byId("author");
  // A browser may forbid storage; the name then lasts as long as the page.
  try {
    field.value = localStorage.getItem(KEY) ?? "";
  } catch {
    return;
  }
  field.addEventListener("change", () => {
    try {
      localStorage.setItem(KEY, author());
    } catch {
      // Nothing to do: the field itself still holds the name.
    }
  });
}
