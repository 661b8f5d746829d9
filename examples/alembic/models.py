"""The tables of the shop."""

from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "alembic_order"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[str]
