// Renews the page's content every two seconds while somebody looks at it and has not selected anything in it.
"use strict";

async function renew() {
  if (document.hidden || String(document.getSelection())) {
    return;
  }
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("main");
    if (fresh) {
      document.getElementById("main").replaceWith(fresh);
    }
  } catch (error) {
    document.title = "Unreachable · Mainspring";
  }
}

setInterval(renew, 2000);
