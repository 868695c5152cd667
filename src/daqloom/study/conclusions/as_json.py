"""Conclusions from a study as JSON objects: numbers in SI units, null for unknown numbers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from daqloom.study.conclusions.agreement import Agreement
from daqloom.study.conclusions.fits import Fit
from daqloom.study.conclusions.levels import Levels, PointLevels
from daqloom.study.statistics.surface import term_name
from daqloom.study.store.store import Damage

SCHEMA = 1

Object = dict[str, Any]


def levels(study: str, found: Levels) -> Object:
    """Return the object that `daqloom study levels --json` prints."""
    return {
        "schema": SCHEMA,
        "study": study,
        "metric": found.metrics[0] if len(found.metrics) == 1 else None,  # each point has its own
        "periods": [{"name": each.name, "length_s": each.length_s} for each in found.periods],
        "points": [_point(one) for one in found.points],
        "left_out": [asdict(one) for one in found.left_out],
    }


def _point(point: PointLevels) -> Object:
    fit = point.fit
    return {
        "method": point.method,
        "at": point.at,
        "metric": point.metric,
        "levels": [
            {"period_s": level.period_s}
            | {name: _null_if_nan(getattr(level, name)) for name in ("value", "low", "high")}
            for level in point.levels
        ],
        "limit": point.limit,
        "observed_s": point.observed_s,
        "most_observed": float(fit.maxima.max()),
        "blocks": fit.maxima.size,
        "block_s": point.block_s,
        "location": fit.location,
        "scale": fit.scale,
        "shape": fit.shape,
        "p_value": fit.goodness.p_value if fit.goodness else None,
        "warnings": list(point.warnings),
    }


def fits(study: str, found: Sequence[Fit], places: Sequence[Mapping[str, float]]) -> Object:
    """Return the object that `daqloom study fit --json` prints. In the terms, x and y are the two
    axes, in SI units."""
    return {
        "schema": SCHEMA,
        "study": study,
        "axes": list(found[0].axes),
        "terms": [term_name(term) for term in found[0].surface.terms],
        "fits": [_fit(fit, places) for fit in found],
    }


def _fit(fit: Fit, places: Sequence[Mapping[str, float]]) -> Object:
    return {
        "method": fit.method,
        "variable": fit.variable,
        "at": fit.held,
        "points": fit.z.size,
        "left_out": dict(fit.left_out),
        "drifting": fit.drifting,
        "coefficients": {name: found._asdict() for name, found in fit.surface.coefficients.items()},
        "r_squared": fit.surface.r_squared,
        "residual_sd": fit.surface.residual_sd,
        "leave_one_out": fit.leave_one_out,
        "leave_step_out": {name: fit.leave_step_out(place) for place, name in enumerate(fit.axes)},
        "predictions": [asdict(fit.predict(place)) for place in places],
    }


def agreements(study: str, found: Sequence[Agreement]) -> Object:
    """Return the object that `daqloom study compare --json` prints."""
    return {"schema": SCHEMA, "study": study, "pairs": [_agreement(each) for each in found]}


def _agreement(agreement: Agreement) -> Object:
    low, high = agreement.scale.interval()
    return {
        "methods": list(agreement.methods),
        "k": agreement.scale.k,
        "error": agreement.scale.error,
        "low": low,
        "high": high,
        "tolerance": agreement.tolerance,
        "parting": agreement.parting,
        "left_out": dict(agreement.left_out),
        "points": [
            {
                "at": at,
                "first": float(agreement.first[i]),
                "second": float(agreement.second[i]),
                "ratio": _null_if_nan(float(agreement.ratio[i])),
                "residual": float(agreement.scale.residuals[i]),
                "load": _null_if_nan(float(agreement.load[i])),
                "parts": verdict.parts if verdict else None,
                "verdict": verdict.sentence if verdict else None,
            }
            for i, (at, verdict) in enumerate(zip(agreement.at, agreement.verdicts, strict=True))
        ],
    }


def damages(found: Sequence[Damage]) -> list[Object]:
    """Damaged results of a store."""
    return [{"file": str(each.path), "reason": each.reason} for each in found]


def _null_if_nan(value: float) -> float | None:
    return value if math.isfinite(value) else None
